import { hash, randomBytes } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { Limiter } from 'svc/internal'
import type { PluginCredentials, RequestFacts } from 'svc/sdk'
import type { Triggers } from '../schema.ts'
import { holds } from '../signature.ts'
import type { InboundStore } from './store.ts'

const LEAST_TOKEN = 32
/** How far the time of a signed request may be off. */
const TOLERANCE_SECS = 300

/** What a request is remembered by: the same effect for the same id, however often it comes. */
export interface Admitted {
  readonly effectId: string
  readonly isRepeat: boolean
}

/** Who may wake us, and how often. */
export class InboundGate {
  readonly #triggers: Triggers
  readonly #store: InboundStore
  readonly #limiter: Limiter
  readonly #failed: PluginCredentials['failed']
  readonly #nowMs: () => number
  /** Enabled without a usable token: nobody can present this one. */
  readonly #nobody = randomBytes(32).toString('hex')
  constructor(
    triggers: Triggers,
    store: InboundStore,
    limiter: Limiter,
    failed: PluginCredentials['failed'],
    nowMs: () => number = Date.now,
  ) {
    this.#failed = failed
    this.#triggers = triggers
    this.#store = store
    this.#limiter = limiter
    this.#nowMs = nowMs
  }

  /** What is wrong with the configuration; `undefined` when nothing is. */
  get problem(): string | undefined {
    const { enabled, token, token_env: name } = this.#triggers
    if (!enabled || this.#usable !== undefined) return undefined
    return `[webhook_triggers] is enabled, and ${token === undefined ? `neither token nor the variable ${name} is set` : `its token has less than ${LEAST_TOKEN} characters`}: every request is refused`
  }
  get #usable(): string | undefined {
    return (this.#triggers.token?.length ?? 0) >= LEAST_TOKEN ? this.#triggers.token : undefined
  }

  /** What callers present; `undefined` while this is off, so that the routes need the key like any other. */
  readonly token = (): string | undefined => (this.#triggers.enabled ? (this.#usable ?? this.#nobody) : undefined)

  /** Whether a request without a token brings a signature instead. */
  readonly signed = (header: RequestFacts['header']): boolean => header('webhook-signature') !== undefined

  /**
   * Lets a request in. Throws `not_found` while this is off, `rate_limit`, `unauthorized` for a wrong signature or an old time, and
   * `conflict` for another request under an id that was used.
   */
  async admit(
    body: Uint8Array,
    facts: Pick<RequestFacts, 'clientAddress' | 'header' | 'requestId'>,
    own: string,
    hook: 'agent' | 'wake',
  ): Promise<Admitted> {
    const { clientAddress, header } = facts
    if (!this.#triggers.enabled)
      throw new Refusal(
        'not_found',
        'Webhook triggers are off: set enabled = true and a token under [webhook_triggers] in config.toml',
      )
    if (!this.#limiter.take(clientAddress, 1))
      throw new Refusal('rate_limit', `More than ${this.#triggers.rate_limit_per_minute} requests in a minute`, {
        retryAfterSecs: 60,
      })
    const [id, time, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
      header(name)?.trim(),
    )
    if (id === undefined && time === undefined && signature === undefined) {
      if (this.#triggers.require_signature)
        throw new Refusal(
          'unauthorized',
          'The request must be signed: webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks, with the token as secret)',
        )
      return { effectId: own, isRepeat: false }
    }
    if (
      id === undefined ||
      !/^[\x21-\x7e]{1,256}$/.test(id) ||
      time === undefined ||
      !/^\d{1,12}$/.test(time) ||
      signature === undefined
    ) {
      const message = 'webhook-id, webhook-timestamp (seconds) and webhook-signature belong together'
      if (header('authorization') === undefined && header('x-api-key') === undefined) this.#wrong(facts, message)
      throw new Refusal('invalid_request', message)
    }
    const seconds = Number(time)
    if (!holds(signature, this.#usable ?? this.#nobody, id, seconds, body))
      this.#wrong(facts, 'The signature does not fit to the request and the token')
    if (Math.abs(this.#nowMs() / 1000 - seconds) > TOLERANCE_SECS)
      this.#wrong(facts, `The request is from another time: webhook-timestamp may be ${TOLERANCE_SECS} seconds off`)
    // The signature does not say which of the hooks it is for: whoever saw the request must not send it to the other one.
    const fingerprint = hash('sha256', Buffer.concat([Buffer.from(`${hook}\n`), body]))
    // Kept far longer than a time is accepted.
    const { first, row } = await this.#store.remember(
      id,
      { fingerprint, effect_id: own },
      new Date(this.#nowMs()).toISOString(),
    )
    if (row.fingerprint !== fingerprint) throw new Refusal('conflict', `Another request came under the id ${id} before`)
    return { effectId: row.effect_id, isRepeat: !first }
  }

  /** Counts as a wrong key does: a signature may be all that a request brings. */
  #wrong({ clientAddress, requestId }: Pick<RequestFacts, 'clientAddress' | 'requestId'>, message: string): never {
    this.#failed({
      clientAddress,
      requestId,
      method: 'POST',
      path: '/api/hooks',
      what: 'a wrong webhook signature',
    })
    throw new Refusal('unauthorized', message)
  }
}
