import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, trimSlashes } from 'svc/channels'
import type {
  ApiAnswer,
  ApiError,
  ApiRequest,
  ChannelLink,
  Destination,
  OutboundAttachment,
  OutboundMessage,
  SentMessage,
} from 'svc/channels'
import type { PumbleConfig } from './config.ts'
import { reactionName } from './emoji.ts'
import { encodeMessage } from './encode.ts'
import { Channel, Failure, File, Identity, Message, Sent, Uploaded, UploadToken, User } from './wire.ts'

const UPLOAD_TIMEOUT_MS = 120_000
const DOWNLOAD_IDLE_MS = 30_000

function findError({ ok, body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  return !ok && parsed.success ? { message: parsed.output.message } : undefined
}

/** The requests of the bot of one workspace. */
export class PumbleApi {
  readonly #client: ApiClient
  readonly #uploads: ApiClient
  readonly #base: string
  readonly #files: string

  constructor(link: ChannelLink<PumbleConfig>) {
    const { token, app_key: key, signing_secret: signing, base_url: base, files_url: files } = link.config
    this.#base = trimSlashes(base)
    this.#files = trimSlashes(files)
    const common = { system: 'pumble', findError, secrets: [token, key, signing], refuseRedirects: true }
    this.#client = new ApiClient(link, { ...common, authenticate: () => ({ token, 'x-app-token': key }) })
    // An upload has a token of its own.
    this.#uploads = new ApiClient(link, common)
  }

  identity = () => this.#json('/oauth2/me', {}, Identity, 'the identity of the bot')

  channel = (id: string) => this.#json(`/v1/channels/${encodeURIComponent(id)}`, {}, Channel, 'a channel')

  user = (id: string) => this.#json(`/v1/workspaceUsers/${encodeURIComponent(id)}`, {}, User, 'a user')

  message = (channel: string, id: string) => this.#json(messagePath(channel, id), {}, Message, 'a message')

  async send(message: OutboundMessage): Promise<SentMessage> {
    const files: string[] = []
    for (const file of message.attachments) files.push(await this.#upload(file))
    const { chatId, threadId } = message.to
    const path = threadId === undefined ? messagesPath(chatId) : messagePath(chatId, threadId)
    return this.#json(path, { json: encodeMessage(message, files) }, Sent, 'the sent message')
  }

  async edit(id: string, message: OutboundMessage): Promise<void> {
    const path = messagePath(message.to.chatId, id)
    await this.#json(path, { method: 'PUT', json: encodeMessage(message) }, Sent, 'the edited message')
  }

  async delete({ chatId }: Destination, id: string): Promise<void> {
    await ignoreMissing(this.#client.open(this.#base + messagePath(chatId, id), { method: 'DELETE' }))
  }

  async react(id: string, emoji: string): Promise<void> {
    const url = `${this.#base}/v1/messages/${encodeURIComponent(id)}/reactions`
    await this.#client.open(url, { json: { code: reactionName(emoji) } })
  }

  async readFile(
    reference: { readonly channel: string; readonly message: string; readonly file: string },
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    const { files } = await this.message(reference.channel, reference.message)
    const file = (files ?? []).find((each) => v.is(File, each) && each.id === reference.file)
    const url = v.is(File, file) ? URL.parse(file.path, `${this.#files}/`) : null
    if (!url || !this.#isOwnHost(url))
      throw new UpstreamFailure('pumble', 'The file is not kept by Pumble', { reason: 'not_found', retry: 'never' })
    const request = { signal, headers: { accept: '*/*' }, streamIdleMs: DOWNLOAD_IDLE_MS }
    return (await this.#client.open(url.href, request)).chunks()
  }

  /** The token goes to Pumble only. */
  #isOwnHost({ protocol, hostname, origin }: URL): boolean {
    const isConfigured = [this.#base, this.#files].some((known) => new URL(known).origin === origin)
    return isConfigured || (protocol === 'https:' && /(?:^|\.)pumble\.com$/.test(hostname))
  }

  async #upload(file: OutboundAttachment): Promise<string> {
    const bytes = new Uint8Array(await file.bytes())
    const json = { filename: file.name, length: bytes.byteLength }
    const { token, remoteProductToken } = await this.#json('/v1/files/upload/token', { json }, UploadToken, 'a token')
    const form = new FormData()
    form.set('file', new Blob([bytes], { type: file.mime }), file.name)
    const headers = { authtoken: token, ...(remoteProductToken && { 'remote-product-token': remoteProductToken }) }
    const request = { form, headers, timeoutMs: UPLOAD_TIMEOUT_MS }
    const uploaded = await this.#uploads.json(`${this.#files}/upload/files`, request, Uploaded, 'the uploaded file')
    const { id } = await this.#json('/v1/files/upload/complete', { json: uploaded }, Sent, 'the uploaded file')
    return id
  }

  #json<S extends v.GenericSchema>(path: string, request: ApiRequest, schema: S, what: string) {
    return this.#client.json(this.#base + path, request, schema, what)
  }
}

function messagesPath(channel: string): string {
  return `/v1/channels/${encodeURIComponent(channel)}/messages`
}
function messagePath(channel: string, id: string): string {
  return `${messagesPath(channel)}/${encodeURIComponent(id)}`
}
