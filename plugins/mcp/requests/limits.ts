import { Refusal } from 'svc/sdk'

const MINUTE_MS = 60_000

/** Counts what servers ask during each call and in a minute. */
export class RequestLimits {
  readonly #now: () => number
  readonly #ofCall = new Map<string, number>()
  readonly #ofServer = new Map<string, number[]>()
  constructor(now: () => number) {
    this.#now = now
  }
  /** Throws `rate_limit` for one too many. `name` is the configuration key. */
  countCall(kind: string, call: { readonly callId: string; readonly turnId: string }, max: number, name: string): void {
    const key = `${kind} ${call.turnId} ${call.callId}`
    const count = (this.#ofCall.get(key) ?? 0) + 1
    if (count > max)
      throw new Refusal('rate_limit', `This server asked ${max} times during this call already (plugins.mcp.${name})`)
    this.#ofCall.set(key, count)
    // Calls that ended: the oldest go first.
    for (const old of [...this.#ofCall.keys()].slice(0, -1000)) this.#ofCall.delete(old)
  }
  countMinute(server: string, max: number, name: string): void {
    const since = this.#now() - MINUTE_MS
    const recent = (this.#ofServer.get(server) ?? []).filter((at) => at > since)
    if (recent.length >= max)
      throw new Refusal('rate_limit', `This server asked ${max} times in a minute (plugins.mcp.${name})`)
    this.#ofServer.set(server, [...recent, this.#now()])
  }
}
