import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk'
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client'
import { isObject, readJson, UpstreamFailure } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import { isSecureUrl } from '../address.ts'
import type { ClientSettings } from '../config.ts'
import type { CardSignature } from '../model.ts'

type Fields = Readonly<Record<string, unknown>>
const MAX_SIGNATURES = 10
const MAX_KEY_BYTES = 65_536

const isCurrent = (card: Fields): boolean =>
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

/**
 * Checks the signatures of a card. The key comes from the address in the signature (`jku`), so a valid signature says
 * that whoever has that address made the card, and no more.
 */
export async function checkSignature(
  raw: Fields,
  { fetch, settings }: { readonly fetch: Fetch; readonly settings: Pick<ClientSettings, 'card_timeout_ms'> },
): Promise<CardSignature> {
  const signatures = Array.isArray(raw['signatures']) ? raw['signatures'].filter(isObject).slice(0, MAX_SIGNATURES) : []
  if (signatures.length === 0) return { state: 'none', keys: [] }
  const headers = signatures.map(({ protected: text }) => headerOf(text))
  const keys = headers.map(({ kid, jku }) => `${kid} at ${URL.parse(jku)?.origin ?? 'no address'}`)
  // The canonical form of a card before 1.0 is not what the SDK computes.
  if (!isCurrent(raw) || !headers.some(({ jku }) => isSecureUrl(jku))) return { state: 'unverified', keys }
  let isKeyMissing = false
  const verify = verifyAgentCardSignature(async (kid, jku = '') => {
    const key = isSecureUrl(jku) ? await findKey(kid, jku, { fetch, settings }).catch(() => undefined) : undefined
    if (!key) isKeyMissing = true
    if (!key) throw new Error('the key cannot be had')
    return key
  })
  try {
    await verify(AgentCard.fromJSON({ ...raw, signatures }))
    return { state: 'valid', keys }
  } catch {
    return { state: isKeyMissing ? 'unverified' : 'invalid', keys }
  }
}

function headerOf(text: unknown): { readonly kid: string; readonly jku: string } {
  try {
    const header = readJson(Buffer.from(typeof text === 'string' ? text : '', 'base64url').toString())
    if (!isObject(header)) return { kid: '', jku: '' }
    const { kid, jku } = header
    return {
      kid: typeof kid === 'string' ? kid.replaceAll(/\p{C}+/gu, ' ').slice(0, 100) : '',
      jku: typeof jku === 'string' ? jku.slice(0, 2_048) : '',
    }
  } catch {
    return { kid: '', jku: '' }
  }
}

async function findKey(
  kid: string,
  jku: string,
  { fetch, settings }: { readonly fetch: Fetch; readonly settings: Pick<ClientSettings, 'card_timeout_ms'> },
): Promise<JsonWebKey | undefined> {
  const answer = await fetch(jku, { maxBytes: MAX_KEY_BYTES, totalTimeoutMs: settings.card_timeout_ms })
  const set = answer.ok ? await answer.json() : undefined
  const keys = isObject(set) && Array.isArray(set['keys']) ? set['keys'].filter(isObject) : []
  // A secret key is none that proves anything: whoever can read it can sign.
  return keys.find((key) => key['kid'] === kid && key['kty'] !== 'oct')
}
