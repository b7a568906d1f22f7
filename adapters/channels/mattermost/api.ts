import { ApiClient, ignoreMissing, trimSlashes } from 'svc/channels'
import type { ChannelLink, Destination, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import * as v from 'valibot'
import type { MattermostConfig } from './config.ts'
import { reactionName } from './emoji.ts'
import { encodePost, encodeText } from './encode.ts'
import { findError } from './errors.ts'
import { ChannelList, PostList, Sent, Upload, User } from './wire.ts'

export const POSTS_PER_PAGE = 200

/** The requests of one bot account. */
export class MattermostApi {
  readonly #client: ApiClient
  readonly #base: string

  constructor(link: ChannelLink<MattermostConfig>) {
    this.#base = `${trimSlashes(link.config.base_url)}/api/v4`
    this.#client = new ApiClient(link, {
      system: 'mattermost',
      findError: (answer) => findError(answer, link.now()),
      secrets: [link.config.token],
      authenticate: () => ({ authorization: `Bearer ${link.config.token}` }),
      refuseRedirects: true,
    })
  }

  get socketUrl(): string {
    return `${this.#base.replace(/^http/i, 'ws')}/websocket`
  }

  me = () => this.#client.json(`${this.#base}/users/me`, {}, User, 'the bot')

  user = (id: string) => this.#client.json(`${this.#base}/users/${encodeURIComponent(id)}`, {}, User, 'a user')

  /** The channels of the bot in all teams. */
  channels = () => this.#client.json(`${this.#base}/users/me/channels`, {}, ChannelList, 'the list of channels')

  postsSince = (channel: string, since: number) => this.#posts(channel, `since=${since}`)

  /** A page, the newest first. */
  posts = (channel: string, page: number) => this.#posts(channel, `page=${page}&per_page=${POSTS_PER_PAGE}`)

  async send(message: OutboundMessage, botId: string): Promise<SentMessage> {
    const files: string[] = []
    for (const file of message.attachments) files.push(await this.#upload(message.to.chatId, file))
    const json = encodePost(message, botId, files)
    const { id } = await this.#client.json(`${this.#base}/posts`, { json }, Sent, 'the sent post')
    return { id }
  }

  async edit(id: string, message: OutboundMessage): Promise<void> {
    const url = `${this.#base}/posts/${encodeURIComponent(id)}/patch`
    await this.#client.json(
      url,
      { method: 'PUT', json: { message: encodeText(message.text) } },
      Sent,
      'the edited post',
    )
  }

  async delete(id: string): Promise<void> {
    await ignoreMissing(this.#client.open(`${this.#base}/posts/${encodeURIComponent(id)}`, { method: 'DELETE' }))
  }

  async typing({ chatId, threadId }: Destination): Promise<void> {
    const json = { channel_id: chatId, ...(threadId !== undefined && { parent_id: threadId }) }
    await this.#client.open(`${this.#base}/users/me/typing`, { json })
  }

  async react(postId: string, emoji: string, botId: string): Promise<void> {
    const json = { user_id: botId, post_id: postId, emoji_name: reactionName(emoji) }
    await this.#client.json(`${this.#base}/reactions`, { json }, v.object({}), 'the reaction')
  }

  async readFile(id: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = `${this.#base}/files/${encodeURIComponent(id)}`
    return (await this.#client.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  }

  #posts(channel: string, query: string) {
    const url = `${this.#base}/channels/${encodeURIComponent(channel)}/posts?${query}`
    return this.#client.json(url, {}, PostList, 'the posts of a channel')
  }

  /** The server keeps the file; it is shown with the post that names it. */
  async #upload(channel: string, file: OutboundAttachment): Promise<string> {
    const form = new FormData()
    form.set('channel_id', channel)
    form.set('files', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    const { file_infos: infos } = await this.#client.json(`${this.#base}/files`, { form }, Upload, 'the uploaded file')
    return infos[0]?.id ?? ''
  }
}
