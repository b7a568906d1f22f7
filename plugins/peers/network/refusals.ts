import { createLimiter, monotonicClock } from 'svc/internal'
import type { Limiter } from 'svc/internal'
import type { Logger } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'

const MINUTE_MS = 60_000
/** As many for all addresses together as for so many of them. */
const ADDRESSES = 6

/** Writes refused links to the audit trail, so that a flood of them fills neither it nor the log. */
export class RefusalLog {
  readonly #audit: Audit
  readonly #log: Logger
  readonly #byAddress: Limiter
  readonly #all: Limiter
  #left = 0
  constructor(audit: Audit, log: Logger, perMinute: number) {
    this.#audit = audit
    this.#log = log
    const common = { windowMs: MINUTE_MS, now: monotonicClock.now }
    this.#byAddress = createLimiter({ ...common, tokens: perMinute, maxKeys: 10_000 })
    this.#all = createLimiter({ ...common, tokens: perMinute * ADDRESSES, maxKeys: 1 })
  }

  async write(address: string, reason: string): Promise<void> {
    const host = address.replace(/:\d+$/, '')
    if (!this.#byAddress.take(host, 1) || !this.#all.take('', 1)) {
      this.#left++
      return
    }
    const left = this.#left
    this.#left = 0
    const more = left === 0 ? '' : ` (${left} more refusals before this one are not written down)`
    this.#log.warn(`no link with ${address}: ${reason}${more}`)
    await this.#audit.write({ event: 'wire_connect', details: `refused: link with ${address}: ${reason}${more}` })
  }
}
