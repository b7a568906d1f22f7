import { hash, randomBytes } from 'node:crypto'
import type { Limiter } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { PluginCredentials, RequestFacts } from 'svc/sdk'
import type { Triggers } from '../schema.ts'
import type { InboundStore } from './store.ts'

const MIN_TOKEN_LENGTH = 32
/** How far the time of a signed request may be off. */
const TOLERANCE_SECS = 300

/** A request that was let in. A repeated one has the effect id of the first. */
export interface AdmittedRequest {
  readonly effectId: string
  readonly isRepeat: boolean
}
type CallFacts = Pick<RequestFacts, 'clientAddress' | 'header' | 'requestId'>
interface Signature {
  readonly id: string
  readonly seconds: number
  readonly signature: string
}

export interface InboundGateDeps {
  readonly triggers: Triggers
  readonly store: () => Promise<InboundStore>
  readonly limiter: Limiter
  readonly failed: PluginCredentials['failed']
  readonly nowMs?: () => number
}

/** Decides who may call the hooks, and how often. */
export class InboundGate {
  readonly #deps: InboundGateDeps
  readonly #nowMs: () => number
  /** Replaces the token when none is usable: no caller can present it. */
  readonly #unusableToken = randomBytes(32).toString('hex')
  constructor(deps: InboundGateDeps) {
    this.#deps = deps
    this.#nowMs = deps.nowMs ?? Date.now
  }

  /** What is wrong with the configuration; `undefined` when nothing is. */
  get problem(): string | undefined {
    const { enabled, token, token_env: name } = this.#deps.triggers
    if (!enabled || this.#usableToken !== undefined) return undefined
    const reason =
      token === undefined
        ? `neither token nor the variable ${name} is set`
        : `its token has less than ${MIN_TOKEN_LENGTH} characters`
    return `[webhook_triggers] is enabled, and ${reason}: every request is refused`
  }
  get #usableToken(): string | undefined {
    const { token } = this.#deps.triggers
    return (token?.length ?? 0) >= MIN_TOKEN_LENGTH ? token : undefined
  }

  /** What callers present; `undefined` while the hooks are off, so that the routes need the API key like any other. */
  readonly token = (): string | undefined =>
    this.#deps.triggers.enabled ? (this.#usableToken ?? this.#unusableToken) : undefined

  /** Whether a request without a token brings a signature instead. */
  readonly signed = (header: RequestFacts['header']): boolean => header('webhook-signature') !== undefined

  /**
   * Lets a request in. Throws `not_found` while the hooks are off, `rate_limit`, `unauthorized` for a wrong signature
   * or an old time, and `conflict` for another request under an id that was used.
   */
  async admit(body: Uint8Array, facts: CallFacts, ownId: string, hook: 'agent' | 'wake'): Promise<AdmittedRequest> {
    const { triggers, limiter } = this.#deps
    if (!triggers.enabled)
      throw new Refusal(
        'not_found',
        'Webhook triggers are off: set enabled = true and a token under [webhook_triggers] in config.toml',
      )
    if (!limiter.take(facts.clientAddress, 1))
      throw new Refusal('rate_limit', `More than ${triggers.rate_limit_per_minute} requests in a minute`, {
        retryAfterSecs: 60,
      })
    const signature = this.#readSignature(facts)
    if (!signature) return { effectId: ownId, isRepeat: false }
    await this.#checkSignature(signature, body, facts)
    return this.#remember(signature.id, body, ownId, hook)
  }

  /** `undefined` for a request without a signature, where none is required. */
  #readSignature(facts: CallFacts): Signature | undefined {
    const { header } = facts
    const id = header('webhook-id')?.trim()
    const time = header('webhook-timestamp')?.trim()
    const signature = header('webhook-signature')?.trim()
    if (id === undefined && time === undefined && signature === undefined) {
      if (!this.#deps.triggers.require_signature) return undefined
      throw new Refusal(
        'unauthorized',
        'The request must be signed: webhook-id, webhook-timestamp and webhook-signature ' +
          '(Standard Webhooks, with the token as secret)',
      )
    }
    const isComplete = /^[\x21-\x7e]{1,256}$/.test(id ?? '') && /^\d{1,12}$/.test(time ?? '')
    if (id !== undefined && isComplete && signature !== undefined) return { id, seconds: Number(time), signature }
    const message = 'webhook-id, webhook-timestamp (seconds) and webhook-signature belong together'
    if (header('authorization') === undefined && header('x-api-key') === undefined) this.#reject(facts, message)
    throw new Refusal('invalid_request', message)
  }

  async #checkSignature({ id, seconds, signature }: Signature, body: Uint8Array, facts: CallFacts): Promise<void> {
    const { verifySignature } = await import('../signature.ts')
    if (!verifySignature(signature, this.#usableToken ?? this.#unusableToken, id, seconds, body))
      this.#reject(facts, 'The signature does not match the request and the token')
    if (Math.abs(this.#nowMs() / 1000 - seconds) > TOLERANCE_SECS)
      this.#reject(facts, `webhook-timestamp is more than ${TOLERANCE_SECS} seconds off`)
  }

  async #remember(id: string, body: Uint8Array, ownId: string, hook: 'agent' | 'wake'): Promise<AdmittedRequest> {
    // The signature does not cover the path: the fingerprint keeps an observer from replaying the request at the other
    // hook.
    const fingerprint = hash('sha256', Buffer.concat([Buffer.from(`${hook}\n`), body]))
    // The id is kept far longer than its timestamp is accepted.
    const now = new Date(this.#nowMs()).toISOString()
    const store = await this.#deps.store()
    const { isFirst, row } = await store.remember(id, { fingerprint, effect_id: ownId }, now)
    if (row.fingerprint !== fingerprint)
      throw new Refusal('conflict', `Another request was sent under the id ${id} before`)
    return { effectId: row.effect_id, isRepeat: !isFirst }
  }

  /** Counts as a wrong key: a signature may be the only credential of a request. */
  #reject({ clientAddress, requestId }: CallFacts, message: string): never {
    this.#deps.failed({
      clientAddress,
      requestId,
      method: 'POST',
      path: '/api/hooks',
      what: 'a wrong webhook signature',
    })
    throw new Refusal('unauthorized', message)
  }
}
