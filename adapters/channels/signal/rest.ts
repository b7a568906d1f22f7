import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import { ApiClient, endOf, JsonSocket, pause, pollInBackground, runInBackground, trimSlashes } from 'svc/channels'
import type { Background } from 'svc/channels'
import type { FileRef, Outgoing, SignalApi } from './api.ts'
import type { Link } from './config.ts'
import { GROUP } from './encode.ts'
import type { Address, MessageRef } from './encode.ts'
import { findRestError } from './errors.ts'
import { About, Numbers, RestDeleted, RestMessages, RestSent } from './wire.ts'

const NORMAL = 1000
const POLL_MS = 2000
/** signal-cli is started for each poll, which takes its time. */
const POLL_TIMEOUT_MS = 60_000
const FILE_TIMEOUT_MS = 180_000

/** The container signal-cli-rest-api: a WebSocket in its mode `json-rpc`, polls in the others. */
export class SignalRest implements SignalApi {
  readonly #link: Link
  readonly #client: ApiClient
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>

  constructor(link: Link) {
    const { token, base_url: base } = link.config
    this.#link = link
    this.#base = trimSlashes(base)
    this.#headers = omitUndefined({ authorization: token === undefined ? undefined : `Bearer ${token}` })
    this.#client = new ApiClient(link, {
      system: 'signal',
      authenticate: () => this.#headers,
      findError: findRestError,
      secrets: token === undefined ? [] : [token],
      refuseRedirects: true,
    })
  }

  async check(): Promise<void> {
    const { number } = this.#link.config
    const numbers = await this.#client.json(`${this.#base}/v1/accounts`, {}, Numbers, 'the list of accounts')
    if (numbers.includes(number)) return
    throw new UpstreamFailure('signal', `signal-cli-rest-api does not serve ${number}: register the number there`, {
      reason: 'auth',
      retry: 'never',
    })
  }

  async listen(receive: (event: unknown) => Promise<void>): Promise<Background> {
    const { mode } = await this.#client.json(`${this.#base}/v1/about`, {}, About, 'what it is')
    return mode === 'json-rpc' ? this.#openSocket(receive) : this.#poll(receive)
  }

  /** A part of a path on the server. */
  fileName(name: string): string {
    return name.replaceAll(/[;,/\\]/g, '_')
  }

  async send({ to, text, files, quote }: Outgoing): Promise<number> {
    const json = omitUndefined({
      number: this.#link.config.number,
      recipients: [recipientOf(to)],
      message: text,
      base64_attachments: files.length > 0 ? files : undefined,
      quote_timestamp: quote?.timestamp,
      quote_author: quote?.author,
      quote_message: quote?.text,
      text_mode: 'normal',
    })
    const request = { json, timeoutMs: FILE_TIMEOUT_MS }
    const answer = await this.#client.json(`${this.#base}/v2/send`, request, RestSent, 'the sent message')
    const [first] = [answer].flat()
    return first?.timestamp ?? 0
  }

  async delete(to: Address, timestamp: number): Promise<void> {
    const json = { recipient: recipientOf(to), timestamp }
    await this.#client.json(this.#url('remote-delete'), { method: 'DELETE', json }, RestDeleted, 'the removed message')
  }
  async typing(to: Address): Promise<void> {
    await this.#client.open(this.#url('typing-indicator'), { method: 'PUT', json: { recipient: recipientOf(to) } })
  }
  async react(to: Address, { timestamp, author }: MessageRef, emoji: string): Promise<void> {
    const json = { recipient: recipientOf(to), reaction: emoji, target_author: author, timestamp }
    await this.#client.open(this.#url('reactions'), { json })
  }

  async readFile({ id }: FileRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = `${this.#base}/v1/attachments/${encodeURIComponent(id)}`
    return (await this.#client.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  }

  async #openSocket(receive: (event: unknown) => Promise<void>): Promise<Background> {
    const url = this.#url('receive').replace(/^http/i, 'ws')
    const raw = await this.#link.webSocket(url, { headers: this.#headers, signal: this.#link.signal })
    const socket = new JsonSocket(this.#link, raw, (frame) => () => receive(frame))
    return runInBackground(this.#link, async (signal) => {
      const close = (): void => void socket.close(NORMAL)
      signal.addEventListener('abort', close, { once: true })
      if (signal.aborted) close()
      const { failure, code } = await socket.ended
      signal.removeEventListener('abort', close)
      if (failure !== undefined) return endOf(failure)
      return { retry: 'later', reason: `signal-cli-rest-api closed the connection with ${code}` }
    })
  }

  #poll(receive: (event: unknown) => Promise<void>): Background {
    return pollInBackground(this.#link, async (signal) => {
      const request = { signal, timeoutMs: POLL_TIMEOUT_MS }
      const url = `${this.#url('receive')}?timeout=1`
      for (const event of await this.#client.json(url, request, RestMessages, 'the list of messages'))
        await receive(event)
      await pause(this.#link, POLL_MS, signal)
    })
  }

  #url(what: string): string {
    return `${this.#base}/v1/${what}/${encodeURIComponent(this.#link.config.number)}`
  }
}

/** The REST API encodes the ids of groups once more. */
const recipientOf = (to: Address): string =>
  'groupId' in to ? `${GROUP}${Buffer.from(to.groupId).toString('base64')}` : to.recipient
