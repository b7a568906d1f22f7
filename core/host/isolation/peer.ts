import { Refusal, UpstreamFailure } from '../../errors/error.ts'
import type { ErrorCode } from '../../errors/error.ts'
import { isObject } from '../../schema/object.ts'

/** Handles a call of the other side. What it returns is sent back. */
export type Handle = (method: string, input: unknown, signal: AbortSignal) => unknown

/** Calls of the other side that may run at once: it may not fill the memory of this one. */
const MAX_CALLS = 1024

/**
 * Both ends of the channel between the daemon and the process of a plugin: calls and their answers, as JSON. What
 * arrives is not trusted.
 */
export class Peer {
  readonly #send: (message: object) => void
  readonly #handle: Handle
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #running = new Map<number, AbortController>()
  #lastId = 0
  #closed: Error | undefined

  constructor(send: (message: object) => void, handle: Handle) {
    this.#send = send
    this.#handle = handle
  }

  /** Rejects with the error of the other side, with the reason of the signal, and when the channel closes. */
  async call(method: string, input: unknown, signal?: AbortSignal): Promise<unknown> {
    if (this.#closed) throw this.#closed
    signal?.throwIfAborted()
    const id = ++this.#lastId
    const call = Promise.withResolvers<unknown>()
    this.#calls.set(id, call)
    const abort = (): void => {
      this.#send({ abort: id })
      call.reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
    try {
      this.#send({ id, method, input: encode(input) })
      return await call.promise
    } finally {
      this.#calls.delete(id)
      signal?.removeEventListener('abort', abort)
    }
  }

  /** A message of the other side. One that makes no sense is dropped. */
  receive(message: unknown): void {
    if (!isObject(message)) return
    if (typeof message['abort'] === 'number') this.#running.get(message['abort'])?.abort()
    if (typeof message['id'] === 'number' && typeof message['method'] === 'string')
      void this.#run(message['id'], message['method'], decode(message['input']))
    if (typeof message['answer'] !== 'number') return
    const call = this.#calls.get(message['answer'])
    if ('error' in message) call?.reject(toError(message['error']))
    else call?.resolve(decode(message['value']))
  }

  close(reason: Error): void {
    this.#closed = reason
    for (const call of this.#calls.values()) call.reject(reason)
    for (const running of this.#running.values()) running.abort(reason)
  }

  async #run(id: number, method: string, input: unknown): Promise<void> {
    const controller = new AbortController()
    try {
      if (this.#running.size >= MAX_CALLS)
        throw new Refusal('rate_limit', `More than ${MAX_CALLS} calls at once are not taken`)
      this.#running.set(id, controller)
      this.#send({ answer: id, value: encode(await this.#handle(method, input, controller.signal)) })
    } catch (error) {
      this.#send({ answer: id, error: fromError(error) })
    } finally {
      this.#running.delete(id)
    }
  }
}

const TAG = '~type'
/** JSON has no bytes, no large integers and no `undefined`. */
function encode(value: unknown): unknown {
  if (value === undefined) return { [TAG]: 'undefined' }
  if (typeof value === 'bigint') return { [TAG]: 'bigint', value: String(value) }
  if (value instanceof Uint8Array) return { [TAG]: 'bytes', value: Buffer.from(value).toString('base64') }
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(encode)
  if (!isObject(value)) return typeof value === 'function' || typeof value === 'symbol' ? null : value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) =>
      one === undefined || typeof one === 'function' ? [] : [[key, encode(one)]],
    ),
  )
}
function decode(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decode)
  if (!isObject(value)) return value
  const text = value['value']
  if (value[TAG] === 'undefined') return undefined
  if (value[TAG] === 'bigint' && typeof text === 'string' && /^-?\d{1,40}$/.test(text)) return BigInt(text)
  if (value[TAG] === 'bytes' && typeof text === 'string') return new Uint8Array(Buffer.from(text, 'base64'))
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, decode(one)]))
}

function fromError(error: unknown): object {
  if (error instanceof Refusal)
    return {
      kind: 'refusal',
      code: error.code,
      message: error.message,
      details: encode(error.details),
      retryAfterSecs: error.retryAfterSecs,
    }
  if (error instanceof UpstreamFailure) return { ...error, kind: 'upstream', message: error.message, cause: undefined }
  return { kind: 'error', message: error instanceof Error ? error.message : String(error) }
}
const CODES = /^(invalid_request|unauthorized|forbidden|rate_limit|conflict|payload_too_large|service_unavailable)$/
const REASONS = /^(rate_limit|auth|overloaded|server_error|network|timeout|cut|malformed|invalid_request|not_found)$/
function toError(error: unknown): Error {
  const { kind, message, code, details, retryAfterSecs, system, reason, retry } = isObject(error) ? error : {}
  const text = typeof message === 'string' ? message : 'it failed without a message'
  const after = typeof retryAfterSecs === 'number' ? { retryAfterSecs } : {}
  if (kind === 'refusal') {
    const known = typeof code === 'string' && (CODES.test(code) || /^[a-z_]{0,60}not_found$/.test(code))
    // A code that the plugin defined itself is known in its process only.
    return new Refusal(known ? (code as ErrorCode) : 'conflict', text, {
      ...after,
      ...(isObject(details) ? { details } : {}),
    })
  }
  if (kind !== 'upstream') return new Error(text)
  return new UpstreamFailure(typeof system === 'string' ? system : 'another system', text, {
    ...after,
    reason: typeof reason === 'string' && REASONS.test(reason) ? (reason as UpstreamFailure['reason']) : 'network',
    retry: retry === 'never' ? 'never' : 'later',
  })
}
