import type * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink } from 'svc/channels'
import type { LineConfig } from './config.ts'
import { findError } from './errors.ts'
import { Bot, Done, Group, Profile, Sent } from './wire.ts'
import type { Source } from './wire.ts'

/** LINE waits two seconds for the answer to an event. */
const NAME_TIMEOUT_MS = 1000
const LOADING_SECONDS = 20
const id = encodeURIComponent

/** The requests of one channel. */
export class LineApi {
  readonly #client: ApiClient
  readonly #base: string
  readonly #dataBase: string

  constructor(link: ChannelLink<LineConfig>) {
    const { token, channel_secret: secret, base_url: base, data_url: data } = link.config
    this.#base = trimSlashes(base)
    this.#dataBase = trimSlashes(data)
    this.#client = new ApiClient(link, {
      system: 'line',
      authenticate: () => ({ authorization: `Bearer ${token}` }),
      findError,
      secrets: [token, secret],
      refuseRedirects: true,
    })
  }

  me = () => this.#call('/info', {}, Bot, 'the bot')

  async push(to: string, messages: readonly object[], retryKey: string): Promise<string> {
    const request = { json: { to, messages }, headers: { 'x-line-retry-key': retryKey } }
    return firstId(await this.#call('/message/push', request, Sent, 'the sent message'))
  }
  async reply(replyToken: string, messages: readonly object[]): Promise<string> {
    return firstId(await this.#call('/message/reply', { json: { replyToken, messages } }, Sent, 'the sent message'))
  }

  async showLoading(chatId: string): Promise<void> {
    const json = { chatId, loadingSeconds: LOADING_SECONDS }
    await this.#call('/chat/loading/start', { json }, Done, 'an answer')
  }

  async userName({ userId, groupId, roomId }: Source): Promise<string> {
    const user = id(userId ?? '')
    const path =
      groupId != null
        ? `/group/${id(groupId)}/member/${user}`
        : roomId != null
          ? `/room/${id(roomId)}/member/${user}`
          : `/profile/${user}`
    return (await this.#call(path, { timeoutMs: NAME_TIMEOUT_MS }, Profile, 'a profile')).displayName
  }
  async groupName(groupId: string): Promise<string> {
    const path = `/group/${id(groupId)}/summary`
    return (await this.#call(path, { timeoutMs: NAME_TIMEOUT_MS }, Group, 'a group')).groupName
  }

  async readContent(messageId: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = `${this.#dataBase}/v2/bot/message/${id(messageId)}/content`
    const response = await this.#client.open(url, { signal, streamIdleMs: 30_000, headers: { accept: '*/*' } })
    if (response.status === 202)
      throw new UpstreamFailure('line', 'line is still preparing the file', { reason: 'overloaded', retry: 'later' })
    return response.chunks()
  }

  #call<S extends v.GenericSchema>(path: string, request: ApiRequest, schema: S, what: string) {
    return this.#client.json(`${this.#base}/v2/bot${path}`, request, schema, what)
  }
}

function firstId({ sentMessages: [{ id: first }] }: v.InferOutput<typeof Sent>): string {
  return first
}
