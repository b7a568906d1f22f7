import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { isObject, readJson } from 'svc/sdk'
import type { Child, Spawn, SpawnRequest } from 'svc/sdk'
import { messageOf, monotonicClock } from 'svc/internal'
import { LineReader } from './lines.ts'

/** How long a program has to end by itself after its input was closed. */
const EXIT_GRACE_MS = 2000
/** Nearly 25 days: the longest time a timer of Node can wait. */
const LIFE_MS = 2_147_483_647
/** What the spawn service keeps of the output; it is read here as it comes. */
const KEPT_OUTPUT_BYTES = 1024

export interface StdioLimits {
  readonly maxMessageBytes: number
  readonly maxBrokenMessages: number
  readonly maxMessagesPerSecond: number
  readonly maxWaitingBytes: number
}
export interface StdioTransportOptions {
  readonly start: Spawn['start']
  readonly request: Omit<SpawnRequest, 'onOutput' | 'input' | 'background' | 'timeoutMs' | 'outputBytes'>
  readonly limits: StdioLimits
  /** What the program writes to stderr, and lines on stdout that are no messages. */
  readonly log: (text: string) => void
}

/** A program that speaks MCP over its standard input and output: one JSON-RPC message a line. */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** Why the program was ended, or how it ended; `undefined` while it runs and after `close`. */
  reason: string | undefined
  readonly #options: StdioTransportOptions
  readonly #decoder = new TextDecoder()
  readonly #lines: LineReader
  #child: Child | undefined
  #closing: Promise<void> | undefined
  #broken = 0
  #waitingBytes = 0
  /** The highest id of a request of ours: the SDK counts them up. */
  #lastId = -1
  readonly #textIds = new Set<string>()
  #second = 0
  #inSecond = 0

  constructor(options: StdioTransportOptions) {
    this.#options = options
    this.#lines = new LineReader({
      maxBytes: options.limits.maxMessageBytes,
      onLine: (line) => this.#read(line),
      onTooLong: () =>
        this.#stop(`it sent a message of more than plugins.mcp.max_message_bytes (${options.limits.maxMessageBytes})`),
    })
  }

  get pid(): number | undefined {
    return this.#child?.running ? this.#child.pid : undefined
  }

  async start(): Promise<void> {
    const child = await this.#options.start({
      ...this.#options.request,
      input: 'open',
      background: true,
      timeoutMs: LIFE_MS,
      outputBytes: KEPT_OUTPUT_BYTES,
      onOutput: (bytes, from) => {
        if (from === 'stdout') this.#lines.add(bytes)
        else this.#options.log(this.#decoder.decode(bytes, { stream: true }))
      },
    })
    this.#child = child
    void child.ended.then(({ code, signal, reason }) => {
      this.#lines.end()
      if (!this.#closing) this.reason ??= describeExit(code, signal, reason)
      this.onclose?.()
    })
    if (this.#closing) await child.kill()
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const child = this.#child
    if (!child?.running) throw new Error('the server is not running')
    if ('method' in message && 'id' in message) this.#noteId(message.id)
    const line = Buffer.from(`${JSON.stringify(message)}\n`)
    if (this.#waitingBytes + line.length > this.#options.limits.maxWaitingBytes) {
      this.#stop(`it does not read its input: plugins.mcp.max_waiting_bytes is reached`)
      throw new Error('the server does not read its input')
    }
    this.#waitingBytes += line.length
    try {
      await child.write(line)
    } finally {
      this.#waitingBytes -= line.length
    }
  }

  /** Ends the program with everything it started. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    const child = this.#child
    if (!child) return this.onclose?.()
    child.closeInput()
    let cancel: (() => void) | undefined
    const grace = new Promise<void>((resolve) => {
      cancel = monotonicClock.after(EXIT_GRACE_MS, resolve)
    })
    await Promise.race([child.ended, grace])
    cancel?.()
    await child.kill()
  }

  #stop(reason: string): void {
    if (this.reason !== undefined || this.#closing) return
    this.reason = reason
    this.#lines.end()
    void this.#child?.kill()
  }

  #read(line: string): void {
    const { maxMessagesPerSecond } = this.#options.limits
    const second = Math.floor(monotonicClock.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#inSecond = 0
    }
    if (++this.#inSecond > maxMessagesPerSecond)
      return this.#stop(`it sent more than plugins.mcp.max_messages_per_second (${maxMessagesPerSecond})`)
    const problem = this.#deliver(line)
    if (problem === undefined) return
    const { maxBrokenMessages } = this.#options.limits
    this.#options.log(`[svc] ${problem}: ${line.slice(0, 200)}\n`)
    if (++this.#broken > maxBrokenMessages)
      this.#stop(`it sent more than plugins.mcp.max_broken_messages (${maxBrokenMessages}) broken messages: ${problem}`)
  }

  /** What is wrong with the message. */
  #deliver(line: string): string | undefined {
    let message: unknown
    try {
      message = readJson(line)
    } catch (error) {
      return `not JSON (${messageOf(error).slice(0, 100)})`
    }
    if (!isObject(message) || message['jsonrpc'] !== '2.0') return 'not a JSON-RPC 2.0 message'
    if (!('method' in message) && !this.#isOurs(message['id'])) return 'an answer to a request that nobody sent'
    this.onmessage?.(message as unknown as JSONRPCMessage)
    return undefined
  }

  #noteId(id: string | number): void {
    if (typeof id === 'number') this.#lastId = Math.max(this.#lastId, id)
    else this.#textIds.add(id)
  }
  #isOurs(id: unknown): boolean {
    return typeof id === 'number' ? id >= 0 && id <= this.#lastId : typeof id === 'string' && this.#textIds.has(id)
  }
}

function describeExit(code: number | null, signal: string | null, reason: string): string {
  if (reason === 'timeout') return 'it ran for 24 days and is started anew'
  return signal === null ? `it ended with exit code ${code ?? 'unknown'}` : `it was ended by ${signal}`
}
