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
const ACCEPT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const PARSE_ERROR = -32_700
const SERVER_ERROR = -32_000

/** Passes messages of MCP on: a line of the client is a request to the daemon, and what it answers are lines. */
export class Bridge {
  readonly #options: BridgeOptions
  readonly #leave = new AbortController()
  #session: Readonly<Record<string, string>> = {}
  /** The handshake: what follows it needs the session that it opens. */
  #opening: Promise<void> = Promise.resolve()
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
    const { client, path, write } = this.#options
    const answer = await client.exchange('POST', path, {
      body: message,
      headers: this.#headers(),
      signal: this.#leave.signal,
    })
    const id = answer.headers.get('mcp-session-id')
    if (isHandshake && id !== null) this.#session = { 'mcp-session-id': id }
    for await (const each of answer.messages()) {
      if (isHandshake && isObject(each) && isObject(each['result']))
        this.#session = { ...this.#session, 'mcp-protocol-version': String(each['result']['protocolVersion']) }
      // What the daemon says about a request without an id has one only in HTTP.
      if (idOf(message) !== null || (isObject(each) && 'method' in each)) write(withId(each, idOf(message)))
    }
    if (isObject(message) && message['method'] === 'notifications/initialized') void this.#follow()
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

  #headers(): Readonly<Record<string, string>> {
    return { ...ACCEPT, ...this.#options.headers, ...this.#session }
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
