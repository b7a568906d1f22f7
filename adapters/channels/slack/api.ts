import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, trimSlashes } from 'svc/channels'
import type { ChannelLink, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { SlackConfig } from './config.ts'
import { reactionName } from './emoji.ts'
import { encodeEdit, encodeMessage, encodeUpload, METADATA_TYPE, threadOf } from './encode.ts'
import { findError, hasCode } from './errors.ts'
import { messageId, timestampOf } from './message-id.ts'
import { Connection, Done, FileInfo, History, Identity, OwnMessage, Posted, Upload, UserInfo } from './wire.ts'

/** How far back a message is looked for whose answer was lost. */
const SEARCH_MS = 86_400_000
const NO_METADATA = { event_type: '', event_payload: { id: '' } }

/** The Web API for one app. */
export class SlackApi {
  readonly #link: ChannelLink<SlackConfig>
  readonly #client: ApiClient
  readonly #base: string

  constructor(link: ChannelLink<SlackConfig>) {
    const { token, app_token: appToken, signing_secret: signingSecret, base_url: base } = link.config
    this.#link = link
    this.#base = trimSlashes(base)
    this.#client = new ApiClient(link, {
      system: 'slack',
      findError,
      secrets: [token, appToken ?? '', signingSecret ?? ''],
      refuseRedirects: true,
    })
  }

  identity = () => this.#call('auth.test', {}, Identity, 'the identity of the bot')

  /** The address of a socket, which can be used once. */
  async connect(): Promise<string> {
    const { app_token: token = '' } = this.#link.config
    const { url } = await this.#call('apps.connections.open', {}, Connection, 'the address of a socket', token)
    return url
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    if (message.attachments.length > 0) return this.#sendFiles(message)
    const earlier = message.mayBeSent ? await this.#findSent(message) : undefined
    if (earlier) return { id: earlier, wasSentBefore: true }
    const body = encodeMessage(message, this.#link.config.unfurl)
    const { ts } = await this.#call('chat.postMessage', body, Posted, 'the sent message')
    return { id: messageId(message.to.chatId, ts) }
  }

  async edit(id: string, message: OutboundMessage): Promise<void> {
    await this.#call('chat.update', encodeEdit(message, id), Done, 'the edited message')
  }

  async delete(channel: string, id: string): Promise<void> {
    const body = { channel, ts: timestampOf(id) }
    await ignoreMissing(this.#call('chat.delete', body, Done, 'the removed message'))
  }

  async react(channel: string, id: string, emoji: string): Promise<void> {
    const body = { channel, timestamp: timestampOf(id), name: reactionName(emoji) }
    try {
      await this.#call('reactions.add', body, Done, 'the reaction')
    } catch (error) {
      if (!hasCode(error, 'already_reacted')) throw error
    }
  }

  async userName(id: string): Promise<string> {
    const { user } = await this.#form('users.info', { user: id }, UserInfo, 'a user')
    return user.profile?.display_name || user.profile?.real_name || user.real_name || user.name || id
  }

  async readFile(id: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { file } = await this.#form('files.info', { file: id }, FileInfo, 'a file')
    const url = file.url_private_download ?? file.url_private
    if (url == null) throw unreadable('slack gives no address for the file')
    if (!this.#isOwnOrigin(url)) throw unreadable('the file is not kept by slack')
    const response = await this.#client.open(url, { signal, headers: { ...this.#bearer(), accept: '*/*' } })
    // Without the scope Slack answers with its page for signing in.
    if (response.header('content-type')?.startsWith('text/html') && file.mimetype !== 'text/html')
      throw unreadable('slack does not give the file to the app: it needs the scope files:read')
    return response.chunks()
  }

  /** Slack has no idempotency key: what was sent is found in the chat by what is kept with it. */
  async #findSent(message: OutboundMessage): Promise<string | undefined> {
    const thread = threadOf(message)
    const method = thread === undefined ? 'conversations.history' : 'conversations.replies'
    const fields = {
      channel: message.to.chatId,
      ...(thread !== undefined && { ts: thread }),
      oldest: String(Math.floor((this.#link.now() - SEARCH_MS) / 1000)),
      limit: '200',
      include_all_metadata: 'true',
    }
    try {
      const { messages } = await this.#form(method, fields, History, 'the messages of a chat')
      for (const raw of messages ?? []) {
        const own = v.safeParse(OwnMessage, raw)
        const { event_type: type, event_payload: payload } = own.success ? own.output.metadata : NO_METADATA
        if (own.success && type === METADATA_TYPE && payload.id === message.id)
          return messageId(message.to.chatId, own.output.ts)
      }
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.retry === 'later') throw error
      // Without the scope for the history the message is sent again.
      this.#link.log.debug('Slack does not tell whether a message was sent', { error })
    }
    return undefined
  }

  async #sendFiles(message: OutboundMessage): Promise<SentMessage> {
    const files: { id: string; title: string }[] = []
    for (const file of message.attachments) files.push({ id: await this.#upload(file), title: file.name })
    await this.#call('files.completeUploadExternal', encodeUpload(message, files), Done, 'the sent files')
    // Slack posts the message later and does not tell its time stamp.
    return { id: '' }
  }

  async #upload(file: OutboundAttachment): Promise<string> {
    const body = await file.bytes()
    const fields = { filename: file.name, length: String(body.byteLength) }
    const upload = await this.#form('files.getUploadURLExternal', fields, Upload, 'the address for a file')
    // The address is a credential of its own: the token is not sent.
    await this.#client.open(upload.upload_url, { method: 'POST', body, headers: { 'content-type': file.mime } })
    return upload.file_id
  }

  /** The token goes to Slack only: files can be kept elsewhere, at an address that a member chose. */
  #isOwnOrigin(url: string): boolean {
    const { protocol, hostname, origin } = new URL(url)
    return origin === new URL(this.#base).origin || (protocol === 'https:' && /(^|\.)slack\.com$/.test(hostname))
  }

  #bearer(token = this.#link.config.token) {
    return { authorization: `Bearer ${token}` }
  }

  #call<S extends v.GenericSchema>(method: string, json: unknown, schema: S, what: string, token?: string) {
    const headers = { ...this.#bearer(token), 'content-type': 'application/json; charset=utf-8' }
    return this.#client.json(`${this.#base}/${method}`, { json, headers }, schema, what)
  }

  /** Methods that read take no JSON. */
  #form<S extends v.GenericSchema>(method: string, fields: Record<string, string>, schema: S, what: string) {
    const headers = { ...this.#bearer(), 'content-type': 'application/x-www-form-urlencoded' }
    const body = new URLSearchParams(fields).toString()
    return this.#client.json(`${this.#base}/${method}`, { body, headers }, schema, what)
  }
}

function unreadable(message: string): UpstreamFailure {
  return new UpstreamFailure('slack', message, { reason: 'not_found', retry: 'never' })
}
