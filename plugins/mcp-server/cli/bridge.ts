import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { DaemonUnreachable, isObject, readJson } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

export interface BridgeOptions {
  readonly client: Pick<DaemonClient, 'exchange' | 'url'>
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  write(message: unknown): void
}
type Exchanged = Awaited<ReturnType<DaemonClient['exchange']>>
const ACCEPT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
/** How long requests have that run when the client ends its input. Clients wait two seconds for the program. */
const GRACE_MS = 1000
const PARSE_ERROR = -32_700
const SERVER_ERROR = -32_000
const SESSION_GONE = 404

/** Passes messages of MCP on: a line of the client is a request to the daemon, and what it answers are lines. */
export class Bridge {
  readonly #options: BridgeOptions
  readonly #leave = new AbortController()
  #session: Readonly<Record<string, string>> = {}
  /** The handshake: what follows it needs the session that it opens. */
  #opening: Promise<void> = Promise.resolve()
  /** What the client opened the session with. */
  #handshake: unknown
  #renewal: Promise<boolean> | undefined
  /** What the client asked of its session and a new one has to know: what it follows, and its log level. */
  readonly #asked = new Map<string, object>()
  constructor(options: BridgeOptions) {
    this.#options = options
  }

  /** Until the client ends its input; the session ends with it. */
  async serve(input: Readable): Promise<void> {
    const running = new Set<Promise<void>>()
    for await (const line of createInterface({ input })) {
      if (line.trim() === '') continue
      const work = this.#pass(line)
      running.add(work)
      void work.finally(() => running.delete(work))
    }
    await this.#opening
    // A script that sends its requests and ends its input still waits for their answers.
    await Promise.race([Promise.all(running), once(AbortSignal.timeout(GRACE_MS), 'abort')])
    const { client, path } = this.#options
    if (this.#session['mcp-session-id'] !== undefined)
      await client.exchange('DELETE', path, { headers: this.#headers() }).catch(() => undefined)
    this.#leave.abort()
    await Promise.all(running)
  }

  async #pass(line: string): Promise<void> {
    let message: unknown
    try {
      message = readJson(line)
    } catch {
      this.#fail(null, PARSE_ERROR, 'Parse error: a line is no JSON')
      return
    }
    const isHandshake = isObject(message) && message['method'] === 'initialize'
    const opened = Promise.withResolvers<void>()
    const before = this.#opening
    if (isHandshake) this.#opening = opened.promise
    else await before
    try {
      await this.#exchange(message, isHandshake)
    } catch (error) {
      if (!this.#leave.signal.aborted) this.#fail(idOf(message), SERVER_ERROR, describe(error))
    } finally {
      opened.resolve()
    }
  }

  async #exchange(message: unknown, isHandshake: boolean): Promise<void> {
    const used = this.#session
    const answer = await this.#post(message)
    if (isHandshake) {
      this.#handshake = message
      await this.#relay(message, this.#opened(answer))
    } else if (answer.status === SESSION_GONE && used['mcp-session-id'] !== undefined) {
      const refusal = await Array.fromAsync(answer.messages())
      const isOpen = await this.#renew(used)
      await this.#relay(message, isOpen ? (await this.#post(message)).messages() : refusal)
    } else await this.#relay(message, answer.messages())
    if (isObject(message) && message['method'] === 'notifications/initialized') void this.#follow()
  }
  #post(message: unknown, session = this.#session): Promise<Exchanged> {
    const { client, path } = this.#options
    const headers = this.#headers(session)
    return client.exchange('POST', path, { body: message, headers, signal: this.#leave.signal })
  }
  async #relay(message: unknown, answers: AsyncIterable<unknown> | Iterable<unknown>): Promise<void> {
    const id = idOf(message)
    for await (const each of answers) {
      if (isObject(each) && 'result' in each) this.#keep(message)
      // What the daemon says about a request without an id has one only in HTTP.
      if (id !== null || (isObject(each) && 'method' in each)) this.#options.write(withId(each, id))
    }
  }
  #keep(message: unknown): void {
    if (!isObject(message) || !isObject(message['params'])) return
    const { method, params } = message
    if (method === 'logging/setLevel') this.#asked.set(method, message)
    else if (method === 'resources/subscribe') this.#asked.set(String(params['uri']), message)
    else if (method === 'resources/unsubscribe') this.#asked.delete(String(params['uri']))
  }
  /** The answers to a handshake, whose session is that of what follows. */
  async *#opened(answer: Exchanged): AsyncGenerator {
    const id = answer.headers.get('mcp-session-id')
    if (id !== null) this.#session = { 'mcp-session-id': id }
    for await (const each of answer.messages()) {
      if (isObject(each) && isObject(each['result']))
        this.#session = { ...this.#session, 'mcp-protocol-version': String(each['result']['protocolVersion']) }
      yield each
    }
  }

  /** A client of standard input never opens a second session, and the daemon may have been restarted. */
  #renew(used: Readonly<Record<string, string>>): Promise<boolean> {
    if (this.#session !== used) return this.#renewal ?? Promise.resolve(true)
    this.#renewal ??= this.#shakeHands().finally(() => (this.#renewal = undefined))
    return this.#renewal
  }
  async #shakeHands(): Promise<boolean> {
    const answer = await this.#post(this.#handshake, {})
    await Array.fromAsync(this.#opened(answer))
    if (answer.headers.get('mcp-session-id') === null) return false
    await Array.fromAsync((await this.#post({ jsonrpc: '2.0', method: 'notifications/initialized' })).messages())
    void this.#follow()
    for (const message of this.#asked.values()) await Array.fromAsync((await this.#post(message)).messages())
    // Nobody told the client of what changed in between.
    this.#options.write({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
    for (const message of this.#asked.values()) {
      const { method, params } = message as { readonly method: string; readonly params: { readonly uri?: unknown } }
      if (method === 'resources/subscribe')
        this.#options.write({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: params.uri } })
    }
    return true
  }

  /** What the daemon says without being asked. */
  async #follow(): Promise<void> {
    const { client, path, write } = this.#options
    try {
      const feed = await client.exchange('GET', path, { headers: this.#headers(), signal: this.#leave.signal })
      if (feed.status === 200) for await (const each of feed.messages()) write(each)
    } catch (error) {
      if (!this.#leave.signal.aborted) process.stderr.write(`svc: ${describe(error)}\n`)
    }
  }

  #headers(session = this.#session): Readonly<Record<string, string>> {
    return { ...ACCEPT, ...this.#options.headers, ...session }
  }
  #fail(id: unknown, code: number, message: string): void {
    this.#options.write({ jsonrpc: '2.0', id, error: { code, message } })
  }
}

function idOf(message: unknown): unknown {
  return isObject(message) && 'method' in message && 'id' in message ? message['id'] : null
}
/** An error of the port, such as a wrong key, has no id of its own. */
function withId(answer: unknown, id: unknown): unknown {
  return isObject(answer) && 'error' in answer && answer['id'] === null ? { ...answer, id } : answer
}
function describe(error: unknown): string {
  if (error instanceof DaemonUnreachable) return `the svc of this client does not run any more: ${error.message}`
  return error instanceof Error ? error.message : String(error)
}
