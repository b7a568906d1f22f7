import { AgentCard } from '@a2a-js/sdk'
import { flattenedVerify } from 'jose'
import type { JWK } from 'jose'
import { canonicalJson } from 'svc/internal'
import { isObject, readJson } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import { isSecureUrl } from '../address.ts'
import type { ClientSettings } from '../config.ts'
import type { CardSignature } from '../model.ts'
import { isCurrent } from './normalize.ts'

type Fields = Readonly<Record<string, unknown>>
const MAX_SIGNATURES = 10
const MAX_KEY_BYTES = 65_536

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
  const payload = canonicalize(raw)
  // All keys together: a card may name many addresses that are slow.
  const signal = AbortSignal.timeout(settings.card_timeout_ms)
  let isKeyMissing = false
  for (const [at, { kid, jku }] of headers.entries()) {
    const key = isSecureUrl(jku) ? await findKey(kid, jku, fetch, signal).catch(() => undefined) : undefined
    if (!key) isKeyMissing = true
    else if (await isSignedWith(key, payload, signatures[at])) return { state: 'valid', keys }
  }
  return { state: isKeyMissing ? 'unverified' : 'invalid', keys }
}

/** The SDK verifies too, but prints what does not match to the console. */
async function isSignedWith(key: JsonWebKey, payload: string, signature: Fields | undefined): Promise<boolean> {
  const { protected: header, signature: text } = signature ?? {}
  if (typeof header !== 'string' || typeof text !== 'string') return false
  try {
    await flattenedVerify({ payload, protected: header, signature: text }, key as JWK)
    return true
  } catch {
    return false
  }
}
/** What is signed: the card without its signatures and without fields that are empty, as RFC 8785 orders them. */
function canonicalize(raw: Fields): string {
  const { signatures: _, ...card } = AgentCard.toJSON(AgentCard.fromJSON(raw)) as Fields
  return Buffer.from(canonicalJson(withoutEmpty(card) ?? {})).toString('base64url')
}
function withoutEmpty(value: unknown): unknown {
  if (value === '' || value === null) return undefined
  if (Array.isArray(value)) {
    const items = value.map(withoutEmpty).filter((item) => item !== undefined)
    return items.length > 0 ? items : undefined
  }
  if (!isObject(value)) return value
  const entries = Object.entries(value)
    .map(([name, inner]) => [name, withoutEmpty(inner)] as const)
    .filter(([, inner]) => inner !== undefined)
  return entries.length > 0 ? Object.fromEntries(entries) : undefined
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

async function findKey(kid: string, jku: string, fetch: Fetch, signal: AbortSignal): Promise<JsonWebKey | undefined> {
  const answer = await fetch(jku, { maxBytes: MAX_KEY_BYTES, signal })
  const set = answer.ok ? await answer.json() : undefined
  const keys = isObject(set) && Array.isArray(set['keys']) ? set['keys'].filter(isObject) : []
  // A secret key is none that proves anything: whoever can read it can sign.
  return keys.find((key) => key['kid'] === kid && key['kty'] !== 'oct')
}
