import type { JWK, JWTPayload } from 'jose'
import type { WebhookRequest } from './channel.ts'
import { unauthorized } from './webhook-signature.ts'

/** What a token has to say. */
export interface TokenRules {
  readonly algorithm: 'RS256' | 'HS256'
  readonly issuer?: string
  readonly audience?: string
  /** The present time in milliseconds. */
  readonly now: number
}
export type TokenClaims = Readonly<Record<string, unknown>>
/** The key with this id; `undefined` when there is none. */
export type FindKey = (id: string) => Promise<JWK | undefined>

/** How far the clocks of both sides may differ. */
const TOLERANCE_SECS = 300
const MAX_CHARS = 16_384
/** Platforms publish a new key days before they sign with it. */
const KEEP_KEYS_MS = 86_400_000
/** Whoever forges tokens makes up ids of keys: they are asked for no more often. */
const ASK_AGAIN_MS = 300_000

/** The token in the header `Authorization: Bearer …`. */
export function bearerToken(request: Pick<WebhookRequest, 'header'>): string | undefined {
  return /^Bearer ([^\s]+)$/i.exec(request.header('authorization') ?? '')?.[1]
}

/**
 * The claims of a JSON web token that expires. Throws `Refusal('unauthorized')` unless it is signed with the key and
 * keeps the rules, and whatever `FindKey` throws.
 */
export async function verifyToken(
  token: string | undefined,
  key: string | FindKey,
  { algorithm, issuer, audience, now }: TokenRules,
): Promise<TokenClaims> {
  // An empty secret is one that everybody has.
  if (token === undefined || token.length > MAX_CHARS || key === '') throw unauthorized()
  // Loaded with the first token: it slows down the start.
  const { errors, jwtVerify } = await import('jose')
  const options = {
    algorithms: [algorithm],
    requiredClaims: ['exp'],
    clockTolerance: TOLERANCE_SECS,
    currentDate: new Date(now),
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
  }
  try {
    const verified =
      typeof key === 'string'
        ? await jwtVerify<JWTPayload>(token, new TextEncoder().encode(key), options)
        : await jwtVerify<JWTPayload>(token, async ({ kid = '' }) => (await key(kid)) ?? refuse(), options)
    return verified.payload
  } catch (error) {
    throw error instanceof errors.JOSEError || error instanceof TypeError ? unauthorized() : error
  }
}

function refuse(): never {
  throw unauthorized()
}

/** The keys that a platform publishes, by their ids. */
export class PublishedKeys {
  readonly #now: () => number
  readonly #read: () => Promise<readonly JWK[]>
  #keys: readonly JWK[] = []
  #readAt = -Infinity
  #reading: Promise<void> | undefined

  constructor(deps: { now(): number; read(): Promise<readonly JWK[]> }) {
    this.#now = () => deps.now()
    this.#read = () => deps.read()
  }

  /** Asks the platform when the keys are old, or have none with this id. */
  async find(id: string): Promise<JWK | undefined> {
    const known = this.#get(id)
    const age = this.#now() - this.#readAt
    if (age < (known ? KEEP_KEYS_MS : ASK_AGAIN_MS)) return known
    this.#reading ??= this.#refresh()
    await this.#reading
    return this.#get(id)
  }

  #get(id: string): JWK | undefined {
    return this.#keys.find(({ kid }) => kid === id)
  }

  async #refresh(): Promise<void> {
    try {
      this.#keys = await this.#read()
      this.#readAt = this.#now()
    } finally {
      this.#reading = undefined
    }
  }
}
