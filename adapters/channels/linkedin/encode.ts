import type { ReplyContext } from './wire.ts'

/** A URN as a part of an address: brackets mean something there. */
export function encodeUrn(urn: string): string {
  return encodeURIComponent(urn).replaceAll(/[()'!*~]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** The body of a comment below another one. */
export function encodeComment(organization: string, text: string, { object, parent }: ReplyContext) {
  return { actor: organization, object, parentComment: parent, message: { text } }
}

/** The body of `POST /posts`. */
export function encodePost(organization: string, text: string) {
  return {
    author: organization,
    commentary: text.replaceAll(/[|{}@[\]()<>#\\*_~]/g, String.raw`\$&`),
    visibility: 'PUBLIC',
    distribution: { feedDistribution: 'MAIN_FEED', targetEntities: [], thirdPartyDistributionChannels: [] },
    lifecycleState: 'PUBLISHED',
    isReshareDisabledByAuthor: false,
  }
}
