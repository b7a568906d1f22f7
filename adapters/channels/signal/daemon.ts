import { randomUUID } from 'node:crypto'
import type * as v from 'valibot'
import { EventStreamReader, omitUndefined, readJson, UpstreamFailure } from 'svc/sdk'
import type { StreamedEvent } from 'svc/sdk'
import { ApiClient, ignoreMissing, runInBackground, SavedPosition, trimSlashes } from 'svc/channels'
import type { Background } from 'svc/channels'
import type { FileRef, Outgoing, SignalApi } from './api.ts'
import type { Link } from './config.ts'
import { addressOf } from './encode.ts'
import type { Address, MessageRef } from './encode.ts'
import { findRpcError } from './errors.ts'
import { Accounts, Done, FileContent, rpcAnswer, Sent, Version } from './wire.ts'

/** Three signs of life, which signal-cli sends every 15 seconds. */
const MAX_SILENCE_MS = 45_000
/** Uploads and downloads of signal-cli are a part of the call. */
const FILE_TIMEOUT_MS = 180_000
/** A server that numbers its events sends again those after the last one: all that it kept, for an unknown number. */
const UNKNOWN = 'unknown'

/** `signal-cli daemon --http`: JSON-RPC and a stream of events. */
export class SignalDaemon implements SignalApi {
  readonly #link: Link
  readonly #client: ApiClient
  readonly #base: string
  readonly #position: SavedPosition

  constructor(link: Link) {
    const { token, base_url: base } = link.config
    this.#link = link
    this.#base = `${trimSlashes(base)}/api/v1`
    this.#position = new SavedPosition(link, 'event')
    this.#client = new ApiClient(link, {
      system: 'signal',
      authenticate: () => omitUndefined({ authorization: token === undefined ? undefined : `Bearer ${token}` }),
      findError: findRpcError,
      secrets: token === undefined ? [] : [token],
      refuseRedirects: true,
    })
  }

  async check(): Promise<void> {
    const { number } = this.#link.config
    const accounts = await this.#accounts()
    if (!accounts || accounts.some((one) => one.number === number)) return
    throw new UpstreamFailure('signal', `signal-cli does not serve ${number}: register the number there`, {
      reason: 'auth',
      retry: 'never',
    })
  }

  async listen(receive: (event: unknown) => Promise<void>): Promise<Background> {
    const isFirst = (await this.#link.state.read('event')) === undefined
    const lastId = await this.#position.read()
    if (isFirst) await this.#position.clear()
    const url = `${this.#base}/events?account=${encodeURIComponent(this.#link.config.number)}`
    const headers = omitUndefined({
      accept: 'text/event-stream',
      'last-event-id': isFirst ? undefined : (lastId ?? UNKNOWN),
    })
    const opened = Promise.withResolvers<void>()
    const background = runInBackground(this.#link, async (signal) => {
      try {
        const response = await this.#client.open(url, { signal, headers, streamIdleMs: MAX_SILENCE_MS })
        opened.resolve()
        await this.#readEvents(response.chunks(), receive)
      } catch (error) {
        opened.reject(error)
        throw error
      } finally {
        await this.#position.flush()
      }
      throw new UpstreamFailure('signal', 'signal-cli ended the stream of events', { reason: 'cut', retry: 'later' })
    })
    await opened.promise
    return background
  }

  fileName(name: string): string {
    return encodeURIComponent(name)
  }

  async send({ to, text, files, quote }: Outgoing): Promise<number> {
    const { timestamp } = await this.#call(
      'send',
      {
        ...paramsOf(to),
        message: text,
        attachments: files.length > 0 ? files : undefined,
        quoteTimestamp: quote?.timestamp,
        quoteAuthor: quote?.author,
        quoteMessage: quote?.text,
      },
      Sent,
      FILE_TIMEOUT_MS,
    )
    return timestamp
  }

  async delete(to: Address, timestamp: number): Promise<void> {
    await ignoreMissing(this.#call('remoteDelete', { ...paramsOf(to), targetTimestamp: timestamp }, Done))
  }
  async typing(to: Address): Promise<void> {
    await this.#call('sendTyping', paramsOf(to), Done)
  }
  async react(to: Address, { timestamp, author }: MessageRef, emoji: string): Promise<void> {
    const params = { ...paramsOf(to), emoji, targetAuthor: author, targetTimestamp: timestamp }
    await this.#call('sendReaction', params, Done)
  }

  async readFile({ id, chatId }: FileRef): Promise<AsyncIterable<Uint8Array>> {
    const to = addressOf({ chatId })
    const chat = 'groupId' in to ? { groupId: to.groupId } : { recipient: to.recipient }
    const { data } = await this.#call('getAttachment', { id, ...chat }, FileContent, FILE_TIMEOUT_MS)
    return one(Buffer.from(data, 'base64'))
  }

  /** The accounts of a daemon that serves several; `undefined` for one that serves a single number. */
  async #accounts(): Promise<v.InferOutput<typeof Accounts> | undefined> {
    await this.#call('version', {}, Version)
    try {
      return await this.#call('listAccounts', {}, Accounts)
    } catch (error) {
      if (error instanceof UpstreamFailure && error.message.includes('not implemented')) return undefined
      throw error
    }
  }

  async #call<S extends v.GenericSchema>(
    method: string,
    params: Readonly<Record<string, unknown>>,
    schema: S,
    timeoutMs?: number,
  ): Promise<v.InferOutput<S>> {
    const { number: account } = this.#link.config
    const isForAccount = method !== 'version' && method !== 'listAccounts'
    const json = {
      jsonrpc: '2.0',
      id: randomUUID(),
      method,
      params: omitUndefined({ ...params, account: isForAccount ? account : undefined }),
    }
    const request = omitUndefined({ json, timeoutMs })
    const answer = await this.#client.json(`${this.#base}/rpc`, request, rpcAnswer(schema), `the answer to ${method}`)
    return answer.result as v.InferOutput<S>
  }

  async #readEvents(chunks: AsyncIterable<Uint8Array>, receive: (event: unknown) => Promise<void>): Promise<void> {
    let events: StreamedEvent[] = []
    const reader = new EventStreamReader(
      (event) => events.push(event),
      () =>
        new UpstreamFailure('signal', 'signal-cli sent a line without an end', { reason: 'malformed', retry: 'later' }),
    )
    for await (const chunk of chunks) {
      this.#link.heard()
      reader.feed(chunk)
      const complete = events
      events = []
      for (const { data, id } of complete) {
        await receive(readEvent(data))
        if (id !== undefined) this.#position.set(id)
      }
    }
  }
}

function readEvent(data: string): unknown {
  try {
    return readJson(data)
  } catch {
    return undefined /* logged by whoever receives it */
  }
}

const paramsOf = (to: Address): Readonly<Record<string, unknown>> =>
  'groupId' in to ? { groupId: to.groupId } : { recipient: [to.recipient] }

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
