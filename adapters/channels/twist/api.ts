import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type * as v from 'valibot'
import { conversationOf, decodeWritten, encodeWritten } from './address.ts'
import type { Written } from './address.ts'
import type { TwistConfig } from './config.ts'
import { encodeContent, encodeEntry } from './encode.ts'
import { findError } from './errors.ts'
import {
  Channel,
  Conversation,
  Done,
  EntryList,
  Sent,
  SessionUser,
  Thread,
  UnreadConversations,
  UnreadThreads,
  Upload,
  UserList,
} from './wire.ts'

export const PAGE = 50
const UPLOAD_TIMEOUT_MS = 120_000
const RESOURCES = { comment: 'comments', message: 'conversation_messages', thread: 'threads' } as const

/** The requests of one account. */
export class TwistApi {
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #config: TwistConfig
  readonly #base: string

  constructor(link: ChannelLink<TwistConfig>) {
    const { base_url: base, token } = link.config
    this.#config = link.config
    this.#base = `${trimSlashes(base)}/api`
    const common = { system: 'twist', findError, secrets: [token] }
    this.#client = new ApiClient(link, {
      ...common,
      authenticate: () => ({ authorization: `Bearer ${token}` }),
      refuseRedirects: true,
    })
    // Files are on another host, at addresses that whoever posts them chooses: the token stays here.
    this.#files = new ApiClient(link, common)
  }

  me = () => this.#get('v3/users/get_session_user', {}, SessionUser, 'the account')

  users = (workspace: number) => this.#get('v4/workspace_users/get', { id: workspace }, UserList, 'the users')

  thread = (id: number) => this.#get('v3/threads/getone', { id }, Thread, 'a thread')

  channel = (id: number) => this.#get('v3/channels/getone', { id }, Channel, 'a channel')

  conversation = (id: number) => this.#get('v3/conversations/getone', { id }, Conversation, 'a conversation')

  unreadThreads = (workspace: number, signal: AbortSignal) =>
    this.#get('v3/threads/get_unread', { workspace_id: workspace }, UnreadThreads, 'the unread threads', { signal })

  unreadConversations = (workspace: number, signal: AbortSignal) =>
    this.#get(
      'v3/conversations/get_unread',
      { workspace_id: workspace },
      UnreadConversations,
      'the unread conversations',
      { signal },
    )

  /** Entries from a place on, the oldest first; the newest ones, newest first, without a place. */
  entries = (kind: 'thread' | 'conversation', id: number, from: number | undefined) => {
    // Without the order the server leaves the place aside.
    const range = from === undefined ? {} : { order_by: 'asc', from_obj_index: from }
    const path = kind === 'thread' ? 'v3/comments/get' : 'v3/conversation_messages/get'
    return this.#get(path, { [`${kind}_id`]: id, limit: PAGE, ...range }, EntryList, 'the messages')
  }

  async markRead(kind: 'thread' | 'conversation', id: number, index: number): Promise<void> {
    await this.#post(`v3/${kind}s/mark_read`, { id, obj_index: index }, Done, 'the mark')
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const attachments: object[] = []
    for (const file of message.attachments) attachments.push(await this.#upload(file))
    const kind = kindOf(message)
    const json = encodeEntry(message, kind, attachments, this.#config.thread_title)
    const { id } = await this.#post(`v3/${RESOURCES[kind]}/add`, json, Sent, 'the sent message')
    return { id: encodeWritten({ kind, id }) }
  }

  async edit(sent: string, { text }: OutboundMessage): Promise<void> {
    const { kind, id } = this.#read(sent)
    await this.#post(`v3/${RESOURCES[kind]}/update`, { id, content: encodeContent(text) }, Done, 'the edited message')
  }

  async delete(sent: string): Promise<void> {
    const { kind, id } = this.#read(sent)
    await ignoreMissing(this.#post(`v3/${RESOURCES[kind]}/remove`, { id }, Done, 'the removed message'))
  }

  async react(messageId: string, emoji: string): Promise<void> {
    const { kind, id } = this.#read(messageId)
    await this.#post('v3/reactions/add', { [`${kind}_id`]: id, reaction: emoji }, Done, 'the reaction')
  }

  async readFile(url: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#files.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  }

  #read(text: string): Written {
    try {
      return decodeWritten(text)
    } catch (error) {
      throw new UpstreamFailure('twist', String(error), { reason: 'invalid_request', retry: 'never' })
    }
  }

  async #upload(file: OutboundAttachment): Promise<object> {
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    form.set('attachment_id', crypto.randomUUID())
    form.set('file_name', file.name)
    form.set('file_size', String(file.size))
    form.set('underlying_type', file.mime)
    const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
    return this.#client.json(`${this.#base}/v3/attachments/upload`, request, Upload, 'the uploaded file')
  }

  #get<S extends v.GenericSchema>(
    path: string,
    values: Readonly<Record<string, string | number>>,
    schema: S,
    what: string,
    request: ApiRequest = {},
  ): Promise<v.InferOutput<S>> {
    const query = new URLSearchParams(Object.entries(values).map(([key, value]) => [key, String(value)]))
    const url = `${this.#base}/${path}`
    return this.#client.json(query.size === 0 ? url : `${url}?${query.toString()}`, request, schema, what)
  }

  #post<S extends v.GenericSchema>(path: string, json: object, schema: S, what: string): Promise<v.InferOutput<S>> {
    return this.#client.json(`${this.#base}/${path}`, { json }, schema, what)
  }
}

/** What a message becomes: a channel without a thread gets a new one. */
function kindOf({ to }: OutboundMessage): Written['kind'] {
  if (conversationOf(to.chatId) !== undefined) return 'message'
  return to.threadId === undefined ? 'thread' : 'comment'
}
