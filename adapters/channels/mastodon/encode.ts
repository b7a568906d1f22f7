import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { JsonObject, OutboundAttachment, OutboundMessage } from 'svc/channels'
import { VISIBILITIES } from './config.ts'
import type { Visibility } from './config.ts'

const MAX_IMAGES = 4
/**
 * What the server takes for the beginning of a mention; not the `@` of an address. Source: `MENTION_RE` of
 * app/models/account.rb of github.com/mastodon/mastodon
 */
const MENTION = /(?<![=/\p{L}\p{N}_])@(?=[\p{L}\p{N}_])/gu

/** What is remembered of the post that is answered. */
const ReplyContext = v.object({ status: v.string(), acct: v.string(), visibility: v.string() })
export type ReplyContext = v.InferOutput<typeof ReplyContext>

export function replyContextOf(context: JsonObject | undefined): ReplyContext | undefined {
  const parsed = v.safeParse(ReplyContext, context)
  return parsed.success ? parsed.output : undefined
}

/** The more private of the two. One that only other servers know is for the mentioned alone. */
export function visibilityOf(answered: string | undefined, most: Visibility): Visibility {
  if (answered === undefined) return most
  const known = VISIBILITIES.find((each) => each === answered) ?? 'direct'
  return VISIBILITIES.indexOf(known) > VISIBILITIES.indexOf(most) ? known : most
}

/** A part of a message, which is a post of its own. */
export interface Part {
  readonly text: string
  readonly files: readonly OutboundAttachment[]
}

/** A post has four pictures, or one file of another kind. What the instance does not take is named in a text. */
export function partsOf({ text, attachments }: OutboundMessage, isTaken: (mime: string) => boolean): readonly Part[] {
  const missing = attachments.filter(({ mime }) => !isTaken(mime))
  const note = missing.map(({ name }) => `[The file ${name} was not sent: the instance does not take it.]`).join('\n')
  const texts = [text, note].filter((each) => each !== '')
  const groups = groupsOf(attachments.filter(({ mime }) => isTaken(mime)))
  return Array.from({ length: Math.max(texts.length, groups.length) }, (_, index) => ({
    text: texts[index] ?? '',
    files: groups[index] ?? [],
  }))
}

function groupsOf(files: readonly OutboundAttachment[]): readonly (readonly OutboundAttachment[])[] {
  const images = files.filter(({ kind }) => kind === 'image')
  const others = files.filter(({ kind }) => kind !== 'image')
  const groups = Array.from({ length: Math.ceil(images.length / MAX_IMAGES) }, (_, index) =>
    images.slice(index * MAX_IMAGES, (index + 1) * MAX_IMAGES),
  )
  return [...groups, ...others.map((file) => [file])]
}

export interface PostFields {
  readonly text: string
  /** Who is told of the post. */
  readonly acct: string | undefined
  readonly answers: string | undefined
  readonly visibility: Visibility
  readonly media: readonly string[]
}

/**
 * The body of `POST /api/v1/statuses`. What an agent writes mentions nobody: those who are mentioned are notified, and
 * can read a direct message.
 */
export function encodePost({ text, acct, answers, visibility, media }: PostFields) {
  const silent = text.replaceAll(MENTION, '@\u200b')
  return omitUndefined({
    status: acct === undefined ? silent : `@${acct} ${silent}`.trim(),
    in_reply_to_id: answers,
    visibility,
    media_ids: media.length === 0 ? undefined : media,
  })
}
