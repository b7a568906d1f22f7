import { Refusal } from '../../errors/error.ts'
import { isObject } from '../../schema/object.ts'
import { decode, decodeError, encode, encodeError } from './wire.ts'

/** Handles a call of the other side. What it returns is sent back. */
export type Handle = (method: string, input: unknown, signal: AbortSignal) => unknown

/** Calls of the other side that may run at once: it may not fill the memory of this one. */
const MAX_CALLS = 1024
/** Streams of this side that the other one has not read to their end. */
const MAX_STREAMS = 256
const NEXT = '~next'
const RETURN = '~return'

interface OpenStream {
  readonly iterator: AsyncIterator<unknown>
  readonly onEnd: () => void
}

/**
 * Both ends of the channel between the daemon and the process of a plugin: calls, their answers and streams in them.
 * What arrives is not trusted.
 */
export class Peer {
  readonly #send: (message: object) => void
  readonly #handle: Handle
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #running = new Map<number, AbortController>()
  readonly #streams = new Map<number, OpenStream>()
  #lastId = 0
  #lastStream = 0
  #closed: Error | undefined

  constructor(send: (message: object) => void, handle: Handle) {
    this.#send = send
    this.#handle = handle
  }

  /**
   * Rejects with the error of the other side, with the reason of the signal, and when the channel closes. The signal
   * holds for the streams of the answer too.
   */
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
    let streams = 0
    const release = (): void => {
      if (--streams < 0) signal?.removeEventListener('abort', abort)
    }
    signal?.addEventListener('abort', abort, { once: true })
    try {
      this.#send({ id, method, input: encode(input, (stream) => this.#open(stream, () => undefined)) })
      const toStream = (stream: number): AsyncIterable<unknown> => {
        streams++
        return this.#read(stream, signal, release)
      }
      return decode(await call.promise, toStream)
    } finally {
      this.#calls.delete(id)
      release()
    }
  }

  /** A message of the other side. One that makes no sense is dropped. */
  receive(message: unknown): void {
    if (!isObject(message) || this.#closed) return
    const { abort, id, method, input, answer } = message
    if (typeof abort === 'number') this.#running.get(abort)?.abort()
    if (typeof id === 'number' && typeof method === 'string') void this.#run(id, method, input)
    if (typeof answer !== 'number') return
    const call = this.#calls.get(answer)
    if ('error' in message) call?.reject(decodeError(message['error']))
    else call?.resolve(message['value'])
  }

  close(reason: Error): void {
    this.#closed = reason
    for (const call of this.#calls.values()) call.reject(reason)
    for (const running of this.#running.values()) running.abort(reason)
    for (const id of this.#streams.keys()) this.#end(id)
  }

  async #run(id: number, method: string, encoded: unknown): Promise<void> {
    const controller = new AbortController()
    let streams = 0
    const release = (): void => {
      if (--streams < 0 && this.#running.get(id) === controller) this.#running.delete(id)
    }
    const open = (stream: AsyncIterable<unknown>): number => {
      streams++
      return this.#open(stream, release)
    }
    try {
      this.#admit(id)
      this.#running.set(id, controller)
      const input = decode(encoded, (stream) => this.#read(stream, controller.signal, () => undefined))
      const value = await this.#answer(method, input, controller.signal)
      this.#send({ answer: id, value: encode(value, open) })
    } catch (error) {
      this.#send({ answer: id, error: encodeError(error) })
    } finally {
      release()
    }
  }

  #admit(id: number): void {
    if (this.#running.size >= MAX_CALLS)
      throw new Refusal('rate_limit', `More than ${MAX_CALLS} calls at once are not taken`)
    // The limit counts ids.
    if (this.#running.has(id)) throw new Refusal('conflict', `A call with the id ${id} is running already`)
  }

  async #answer(method: string, input: unknown, signal: AbortSignal): Promise<unknown> {
    if (method === RETURN) return this.#end(Number(input))
    if (method !== NEXT) return await this.#handle(method, input, signal)
    const stream = this.#streams.get(Number(input))
    if (!stream) return { done: true }
    try {
      const { done, value } = await stream.iterator.next()
      if (done === true) this.#forget(Number(input))
      return { done: done === true, value }
    } catch (error) {
      this.#forget(Number(input))
      throw error
    }
  }

  /** A stream of this side, which the other one reads piece by piece. */
  #open(stream: AsyncIterable<unknown>, onEnd: () => void): number {
    if (this.#streams.size >= MAX_STREAMS)
      throw new Refusal('rate_limit', `More than ${MAX_STREAMS} streams at once: read each to its end, or leave it`)
    const id = ++this.#lastStream
    this.#streams.set(id, { iterator: stream[Symbol.asyncIterator](), onEnd })
    return id
  }
  #forget(id: number): void {
    const stream = this.#streams.get(id)
    this.#streams.delete(id)
    stream?.onEnd()
  }
  /** The other side left it. */
  #end(id: number): void {
    const stream = this.#streams.get(id)
    this.#forget(id)
    // Nobody reads on, so nobody is told of an error either.
    void Promise.resolve(stream?.iterator.return?.()).catch(() => undefined)
  }

  /** A stream of the other side. */
  #read(id: number, signal: AbortSignal | undefined, onEnd: () => void): AsyncIterable<unknown> {
    let hasEnded = false
    const end = (): void => {
      if (!hasEnded) onEnd()
      hasEnded = true
    }
    const next = async (): Promise<IteratorResult<unknown>> => {
      if (hasEnded) return { done: true, value: undefined }
      try {
        const piece = await this.call(NEXT, id, signal)
        if (isObject(piece) && piece['done'] === false) return { done: false, value: piece['value'] }
        end()
        return { done: true, value: undefined }
      } catch (error) {
        end()
        throw error
      }
    }
    const leave = async (): Promise<IteratorResult<unknown>> => {
      if (!hasEnded) await this.call(RETURN, id).catch(() => undefined /* the other side has ended */)
      end()
      return { done: true, value: undefined }
    }
    return { [Symbol.asyncIterator]: () => ({ next, return: leave }) }
  }
}
