import { createHash, randomBytes } from 'node:crypto'
import { allFaults, fileKind } from './faults.ts'
import { Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'
import { encryptForWeCom } from './wecom-crypto.ts'

const BOT = 'aibFakeBot'
const SECRET = 'fakeWeComBotSecret0123456789'
const ADA = 'zhangsan'
const GROUP = 'wrGroupChat'
const MAX_BYTES = 20_480

interface Frame {
  cmd?: string
  headers?: { req_id?: string }
  body?: Record<string, unknown>
}
interface Upload {
  readonly type: string
  readonly filename: string
  readonly total_size: number
  readonly total_chunks: number
  readonly md5: string
  readonly chunks: Map<number, Buffer>
}
interface Body extends Record<string, unknown> {
  msgtype?: string
  chatid?: string
  chat_type?: number
  markdown?: { content?: string }
  stream?: { id?: string; finish?: boolean; content?: string }
  image?: { media_id?: string }
  file?: { media_id?: string }
}

export interface FakeWeComBot extends FakePlatform {
  /** How messages came: as an answer to a request, or by themselves. */
  readonly ways: readonly ('answer' | 'push')[]
  /** Signs of life of the adapter. */
  readonly pings: number
  /** The code with which the next request is refused. */
  errcode: number
  /** A message to the robot, with these fields. */
  emit(fields: object): void
  event(eventtype: string): void
}

/** The long connection of WeCom's robots: https://developer.work.weixin.qq.com/document/path/101463. */
export async function startFakeWeComBot(): Promise<FakeWeComBot> {
  const fake = new WeComBot()
  const server = await startSocketServer(
    (call) => fake.handle(call),
    (peer) => fake.accept(peer),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class WeComBot implements Omit<FakeWeComBot, typeof Symbol.asyncDispose> {
  readonly channel = 'wecom'
  readonly secrets = [SECRET]
  // A group passes on what mentions the robot, and nothing else.
  readonly chats = { direct: `user:${ADA}` }
  readonly person = ADA
  // An answer names no pause.
  readonly faults = new Set([...allFaults].filter((kind) => kind !== 'rate_limit'))
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly ways: ('answer' | 'push')[] = []
  origin = ''
  pings = 0
  errcode = 0
  readonly #shown = new Shown()
  readonly #requests = new Map<string, string>()
  readonly #stored = new Map<string, Uint8Array>()
  readonly #uploads = new Map<string, Upload>()
  readonly #media = new Map<string, PlatformFile>()
  readonly #listener = new Presence<Peer>()
  #next = 1

  get config() {
    return { bot_id: BOT, token: SECRET, base_url: this.origin }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongWeComBotSecret' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = () => {}
  waitForListener = async () => {
    await this.#listener.wait()
  }
  disconnect = async () => {
    const peer = await this.#listener.wait()
    this.#listener.remove(peer)
    peer.cut()
  }

  // Messages to the robot

  async deliver(input: PlatformInput): Promise<string> {
    const id = `msg-${this.#next++}`
    const [file] = input.files ?? []
    const text = input.isGroup ? `@Helper ${input.text}` : input.text
    // What the robot writes does not come back.
    if (!input.isOwn)
      this.emit({
        msgid: id,
        ...(input.isGroup ? { chattype: 'group', chatid: GROUP } : { chattype: 'single' }),
        ...(file ? this.#fileContent(file) : { msgtype: 'text', text: { content: text } }),
      })
    return id
  }
  emit(fields: object): void {
    const reqId = `req-${this.#next++}`
    const base = { msgid: `msg-${this.#next++}`, aibotid: BOT, chattype: 'single', from: { userid: ADA } }
    const body = { ...base, msgtype: 'text', create_time: 1_763_640_000 + this.#next, ...fields }
    this.#requests.set(reqId, (body as { chatid?: string }).chatid ?? `user:${ADA}`)
    this.#listener.value?.send({ cmd: 'aibot_msg_callback', headers: { req_id: reqId }, body })
  }
  event(eventtype: string): void {
    const body = { msgid: `event-${this.#next++}`, aibotid: BOT, msgtype: 'event', event: { eventtype } }
    this.#listener.value?.send({ cmd: 'aibot_event_callback', headers: { req_id: `req-${this.#next++}` }, body })
  }
  #fileContent(file: PlatformFile) {
    const key = randomBytes(32)
    const path = `/files/${this.#next++}`
    this.#stored.set(path, encryptForWeCom(key, file.bytes))
    const media = { url: `${this.origin}${path}`, aeskey: key.toString('base64') }
    if (file.kind === 'image') return { msgtype: 'image', image: media }
    return { msgtype: 'file', file: { ...media, filename: file.name } }
  }
  handle({ url }: PlatformCall): PlatformAnswer {
    const body = this.#stored.get(url.pathname)
    return body ? { status: 200, body, headers: { 'content-type': 'application/octet-stream' } } : { status: 404 }
  }

  // The long connection

  accept(peer: Peer): PeerHandlers {
    let isSubscribed = false
    const answer = (frame: Frame, errcode = 0, body?: object): void =>
      peer.send({
        headers: { req_id: frame.headers?.req_id },
        errcode,
        errmsg: errcode === 0 ? 'ok' : 'refused',
        ...(body && { body }),
      })
    return {
      frame: (raw) => {
        const frame = (raw ?? {}) as Frame
        if (!frame.headers?.req_id) this.violations.push('a frame without a name')
        if (frame.cmd === 'aibot_subscribe') {
          isSubscribed = frame.body?.['bot_id'] === BOT && frame.body['secret'] === SECRET
          answer(frame, isSubscribed ? 0 : 853_000)
          if (isSubscribed) this.#listener.set(peer)
        } else if (!isSubscribed) this.violations.push('a frame before the subscription')
        else if (frame.cmd === 'ping') {
          this.pings++
          answer(frame)
        } else this.#request(frame, peer, answer)
      },
      closed: () => this.#listener.remove(peer),
    }
  }

  #request(frame: Frame, peer: Peer, answer: (frame: Frame, errcode?: number, body?: object) => void): void {
    const { cmd = '', body = {} } = frame
    if (cmd.startsWith('aibot_upload_media_')) return answer(frame, ...this.#upload(cmd, body))
    const code = this.errcode
    this.errcode = 0
    if (code !== 0) return answer(frame, code)
    const fault = this.#shown.takeFault()
    if (fault?.kind === 'reset') return peer.cut()
    if (fault && fault.kind !== 'lost_answer') return answer(frame, codeOf(fault))
    const refused = cmd === 'aibot_respond_msg' ? this.#respond(frame) : this.#push(cmd, body)
    if (fault) return peer.cut()
    answer(frame, refused)
  }

  /** An answer belongs to one request, once. */
  #respond({ headers, body = {} }: Frame): number {
    const reqId = headers?.req_id ?? ''
    const chat = this.#requests.get(reqId)
    if (chat === undefined) return 846_605
    const { msgtype, stream } = body as Body
    if (msgtype !== 'stream' || !stream?.id || stream.finish !== true) return this.#refuse('an answer that is none')
    if (!isText(stream.content)) return this.#refuse('a text that is too long')
    this.#requests.delete(reqId)
    this.#show('answer', chat, stream.content)
    return 0
  }
  #push(cmd: string, body: Body): number {
    if (cmd !== 'aibot_send_msg') return this.#refuse(`the command ${cmd}`)
    const { chatid = '', msgtype, markdown } = body
    // Without a type, WeCom finds it.
    const type = body.chat_type || (chatid === ADA ? 1 : 2)
    if (!(type === 1 && chatid === ADA) && !(type === 2 && chatid === GROUP))
      return this.#refuse('a destination that is none')
    const chat = type === 1 ? `user:${chatid}` : chatid
    if (msgtype === 'markdown' && isText(markdown?.content)) {
      this.#show('push', chat, markdown.content)
      return 0
    }
    const media = this.#media.get((msgtype === 'image' ? body.image : body.file)?.media_id ?? '')
    if (!media) return this.#refuse('a message that is none')
    this.#show('push', chat, '', [media])
    return 0
  }
  #show(way: 'answer' | 'push', chatId: string, text: string, files: readonly PlatformFile[] = []): void {
    this.ways.push(way)
    this.#shown.show({ id: `shown-${this.#next++}`, chatId, text, files, buttons: [] })
  }

  #upload(cmd: string, body: Record<string, unknown>): [errcode: number, body?: object] {
    if (cmd === 'aibot_upload_media_init') {
      const id = `upload-${this.#next++}`
      this.#uploads.set(id, { ...(body as unknown as Omit<Upload, 'chunks'>), chunks: new Map() })
      return [0, { upload_id: id }]
    }
    const upload = this.#uploads.get(String(body['upload_id']))
    if (!upload) return [this.#refuse('an upload that is none')]
    if (cmd === 'aibot_upload_media_chunk') {
      const bytes = Buffer.from(String(body['base64_data']), 'base64')
      if (bytes.length > 524_288) return [this.#refuse('a piece that is too large')]
      upload.chunks.set(Number(body['chunk_index']), bytes)
      return [0]
    }
    const pieces = Array.from(
      { length: upload.total_chunks },
      (_, index) => upload.chunks.get(index) ?? Buffer.alloc(0),
    )
    const bytes = new Uint8Array(Buffer.concat(pieces))
    const md5 = createHash('md5').update(bytes).digest('hex')
    if (bytes.length !== upload.total_size || md5 !== upload.md5) return [this.#refuse('a file that is incomplete')]
    const id = `media-${this.#next++}`
    const mime = upload.type === 'image' ? 'image/png' : 'application/octet-stream'
    this.#media.set(id, { kind: fileKind(mime), name: upload.filename, mime, bytes })
    return [0, { type: upload.type, media_id: id, created_at: 1_763_640_000 }]
  }

  #refuse(what: string): number {
    this.violations.push(what)
    return 40_058
  }
}

function isText(text: string | undefined): text is string {
  return text !== undefined && text !== '' && Buffer.byteLength(text) <= MAX_BYTES
}

function codeOf({ kind }: PlatformFault): number {
  if (kind === 'server_error') return -1
  return kind === 'auth' ? 40_001 : 81_013
}
