import { AgentCard } from '@a2a-js/sdk'
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client'
import { isObject, UpstreamFailure } from 'svc/sdk'

type Fields = Readonly<Record<string, unknown>>

export const isCurrent = (card: Fields): boolean =>
  Array.isArray(card['supportedInterfaces']) && card['supportedInterfaces'].length > 0

/** A card of protocol 0.3 or 1.0 in the form of 1.0. Throws `UpstreamFailure` when it is none. */
export function normalizeCard(raw: Fields, host: string): Fields {
  try {
    const resolver = new DefaultAgentCardResolver({ legacyCompat: { enabled: true } })
    const card = AgentCard.toJSON(isCurrent(raw) ? AgentCard.fromJSON(raw) : resolver.normalizeAgentCard(raw))
    if (isObject(card)) return card
  } catch (error) {
    throw notACard(host, error)
  }
  throw notACard(host)
}
const notACard = (host: string, cause?: unknown): UpstreamFailure =>
  new UpstreamFailure(host, `what ${host} answered is no card of an agent`, {
    reason: 'malformed',
    retry: 'never',
    cause,
  })
