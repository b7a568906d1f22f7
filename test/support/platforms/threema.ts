import { createHmac, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import { newBoxPair, openBox, sealBox, secretBox } from './nacl-box.ts'
import type {
  FakePlatform,
  PlatformFault,
  PlatformFile,
  PlatformInput,
  PlatformRequest,
  WebhookTarget,
} from './platform.ts'

const ID = '*SVCTEST'
const PERSON = 'ADAADA01'
const SECRET = 'nvb7QtYwZpGxK2sM'
const FILE_NONCE = Uint8Array.from({ length: 24 }, (_, index) => (index === 23 ? 1 : 0))
const MAX_BOX_BYTES = 4000
const MAX_TEXT_BYTES = 3500

const text = (status: number, body = ''): PlatformAnswer => ({
  status,
  body: new TextEncoder().encode(body),
  headers: { 'content-type': 'text/plain' },
})
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const bytesOf = (value: string): Uint8Array => Uint8Array.from(Buffer.from(value, 'hex'))

interface Stored {
  readonly fields: Readonly<Record<string, string>>
}

/**
 * The Message API of Threema Gateway, and a person with an app. Sources: https://gateway.threema.ch/en/developer/api,
 * and the SDK at https://github.com/threema-ch/threema-msgapi-sdk-python
 */
export class FakeThreema implements FakePlatform {
  readonly channel = 'threema'
  readonly bot = newBoxPair()
  readonly ada = newBoxPair()
  readonly secrets = [SECRET, hex(this.bot.secret)]
  readonly chats = { direct: PERSON }
  readonly person = PERSON
  readonly redelivers = true
  readonly answersInJson = true
  /** It does not say that it is asked too often. */
  readonly faults: ReadonlySet<PlatformFault['kind']> = allFaults.difference(new Set(['rate_limit'] as const))
  readonly typing = []
  readonly reactions = []
  readonly violations: string[] = []
  /** How often somebody asked for a public key. */
  keyLookups = 0
  readonly #shown = new Shown()
  readonly #messages = new Map<string, Stored>()
  readonly #blobs = new Map<string, Uint8Array>()
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 1

  static async start(): Promise<FakeThreema> {
    const fake = new FakeThreema()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get config() {
    return { threema_id: ID, token: SECRET, private_key: hex(this.bot.secret), base_url: this.#server?.origin ?? '' }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongwrongwrong1' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent(count: number) {
    return this.#shown.waitForSent(count)
  }
  fail(fault: PlatformFault): void {
    this.#shown.fail(fault)
  }
  setWebhook(target: WebhookTarget): void {
    this.#target = target
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? hex(randomBytes(8))
    const stored = this.#messages.get(id) ?? { fields: this.fieldsOf(id, this.#contentOf(input)) }
    this.#messages.set(id, stored)
    // An id gets no messages of itself; a receipt of its message comes the same way.
    const fields = input.isOwn ? this.fieldsOf(id, Buffer.from(`80${'01'}${id}`, 'hex')) : stored.fields
    const answer = await this.#target?.(this.signed(fields))
    if (answer?.status !== 200) throw new Error(`the webhook answered ${answer?.status}`)
    return id
  }

  /** The fields of a message with this content. */
  fieldsOf(messageId: string, content: Uint8Array, more: Readonly<Record<string, string>> = {}) {
    const nonce = randomBytes(24)
    const padding = 40
    const padded = Buffer.concat([content, new Uint8Array(padding).fill(padding)])
    const box = sealBox(padded, nonce, this.bot.public, this.ada.secret)
    const date = String(Math.floor(Date.now() / 1000))
    return { from: PERSON, to: ID, messageId, date, nonce: hex(nonce), box: hex(box), nickname: 'Ada', ...more }
  }
  /** A request that Threema signed. */
  signed(fields: Readonly<Record<string, string>>, secret = SECRET): PlatformRequest {
    const content = ['from', 'to', 'messageId', 'date', 'nonce', 'box'].map((name) => fields[name] ?? '').join('')
    const mac = createHmac('sha256', secret).update(content).digest('hex')
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return { method: 'POST', headers, body: Buffer.from(new URLSearchParams({ ...fields, mac }).toString()) }
  }
  forgeries(): readonly PlatformRequest[] {
    const fields = this.fieldsOf('00'.repeat(8), Buffer.from('\u0001forged'))
    const good = this.signed(fields)
    const old = { ...fields, date: String(Math.floor(Date.now() / 1000) - 8 * 86_400) }
    const unsigned = { ...good, body: Buffer.from(new URLSearchParams(fields).toString()) }
    const altered = { ...good, body: Buffer.from(String(good.body).replace(PERSON, 'MALLORY1')) }
    return [unsigned, altered, this.signed(fields, 'another secret'), this.signed(fields, ''), this.signed(old)]
  }

  #contentOf({ text: written, replyTo, files = [] }: PlatformInput): Uint8Array {
    const [file] = files
    if (!file) return Buffer.from(`\u0001${replyTo === undefined ? '' : `> quote #${replyTo}\n\n`}${written}`)
    const key = randomBytes(32)
    const blob = this.#keep(secretBox(key, FILE_NONCE).encrypt(file.bytes))
    const about = { b: blob, k: hex(key), m: file.mime, n: file.name, s: file.bytes.length, i: 0, d: written }
    return Buffer.from(`\u0017${JSON.stringify(about)}`)
  }
  #keep(bytes: Uint8Array): string {
    const id = (this.#next++).toString(16).padStart(32, '0')
    this.#blobs.set(id, bytes)
    return id
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, bytes } = call
    const isSend = url.pathname === '/send_e2e'
    const fields = isSend ? new URLSearchParams(Buffer.from(bytes).toString()) : url.searchParams
    if (fields.get('from') !== ID || fields.get('secret') !== SECRET) return text(401)
    if (method === 'POST' && isSend) return this.#take(Object.fromEntries(fields), response)
    if (method === 'POST' && url.pathname === '/upload_blob') return this.#upload(await call.form())
    const [, folder, name = ''] = url.pathname.split('/')
    if (method !== 'GET') return this.#violation(405, `${method} ${url.pathname}`)
    if (folder === 'credits') return text(200, '97')
    if (folder === 'pubkeys') return this.#publicKey(name)
    const blob = folder === 'blobs' ? this.#blobs.get(name) : undefined
    return blob ? { status: 200, body: blob } : text(404)
  }

  #publicKey(id: string): PlatformAnswer {
    this.keyLookups++
    const pair = { [ID]: this.bot, [PERSON]: this.ada }[id]
    return pair ? text(200, hex(pair.public)) : text(404)
  }

  async #upload(form: FormData): Promise<PlatformAnswer> {
    const blob = form.get('blob')
    if (!(blob instanceof File) || blob.size === 0) return this.#violation(400, 'an upload without a blob')
    return text(200, this.#keep(await blob.bytes()))
  }

  #take(fields: Readonly<Record<string, string>>, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault?.kind === 'reset') return resetConnection(response)
    const status = { server_error: 500, permanent: 402, auth: 401 }[fault?.kind as 'auth'] as number | undefined
    if (status !== undefined) return text(status)
    const { to, nonce = '', box = '' } = fields
    if (to !== PERSON) return this.#violation(400, `a message to ${to}`)
    if (nonce.length !== 48) return this.#violation(400, 'the nonce')
    if (box.length > 2 * MAX_BOX_BYTES) return this.#violation(413, 'the box is too long')
    const padded = openBox(bytesOf(box), bytesOf(nonce), this.bot.public, this.ada.secret)
    const padding = padded.at(-1) ?? 0
    const isPadded = padded.length - 1 >= 32 && padded.subarray(-padding).every((byte) => byte === padding)
    if (!isPadded) return this.#violation(400, 'the padding')
    const id = (this.#next++).toString(16).padStart(16, '0')
    const answer = this.#show(padded.subarray(0, padded.length - padding), { id, key: nonce })
    return fault ? resetConnection(response) : answer
  }

  /** Apps drop a message whose nonce they know. */
  #show(content: Uint8Array, { id, key }: { readonly id: string; readonly key: string }): PlatformAnswer {
    const body = Buffer.from(content.subarray(1)).toString()
    const common = { id, key, chatId: PERSON, buttons: [] }
    if (content[0] === 0x17) {
      const { file, caption } = this.#fileOf(body)
      return text(200, this.#shown.show({ ...common, text: caption, files: [file] }).id)
    }
    if (content[0] !== 1 || Buffer.byteLength(body) > MAX_TEXT_BYTES) return this.#violation(413, 'the text')
    const [quote, replyTo] = /^> quote #([0-9a-f]{16})\n\n/.exec(body) ?? ['']
    const shown = { ...common, text: body.slice(quote.length), files: [], replyTo }
    return text(200, this.#shown.show(shown).id)
  }

  #fileOf(json: string): { readonly file: PlatformFile; readonly caption: string } {
    const { b, k, m: mime, n: name, s, j, d: caption = '' } = JSON.parse(json) as Record<string, string>
    const bytes = secretBox(bytesOf(k ?? ''), FILE_NONCE).decrypt(this.#blobs.get(b ?? '') ?? new Uint8Array())
    if (bytes.length !== Number(s) || ![0, 1, 2].includes(Number(j))) this.violations.push('the description of a file')
    return { file: { kind: 'file', name: name ?? '', mime: mime ?? '', bytes }, caption }
  }

  #violation(status: number, what: string): PlatformAnswer {
    this.violations.push(what)
    return text(status)
  }
}
