import { createPublicKey, verify } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import { makeSigningKey, signToken } from './json-web-token.ts'
import type { SigningKey } from './json-web-token.ts'
import type {
  FakePlatform,
  PlatformFault,
  PlatformFile,
  PlatformInput,
  PlatformRequest,
  WebhookTarget,
} from './platform.ts'

const PROJECT = '1234567890'
const ENDPOINT = 'https://svc.test/api/channels/google_chat/webhook'
const EMAIL = 'helper@project.iam.gserviceaccount.com'
const CHAT = 'chat@system.gserviceaccount.com'
const ADD_ON = `service-${PROJECT}@gcp-sa-gsuiteaddons.iam.gserviceaccount.com`
const ADA = { name: 'users/111', displayName: 'Ada', email: 'ada@x.test', type: 'HUMAN' }
const APP = { name: 'users/999', displayName: 'Helper', type: 'BOT' }
const DIRECT = {
  name: 'spaces/DM1',
  type: 'DM',
  spaceType: 'DIRECT_MESSAGE',
  singleUserBotDm: true,
  spaceThreadingState: 'UNTHREADED_MESSAGES',
}
const ROOM = {
  name: 'spaces/ROOM1',
  type: 'ROOM',
  spaceType: 'SPACE',
  displayName: 'General',
  spaceThreadingState: 'THREADED_MESSAGES',
}
const THREAD = `${ROOM.name}/threads/T1`
const ACCOUNT_KEY = makeSigningKey('account-key')
export const PLATFORM_KEY = makeSigningKey('platform-key')
const OTHER_KEY = makeSigningKey('other-key')
const MAX_BYTES = 32_000

interface Body {
  readonly text?: string
  readonly thread?: { readonly name?: string }
  readonly accessoryWidgets?: readonly {
    readonly buttonList: {
      readonly buttons: readonly {
        readonly text: string
        readonly onClick: {
          readonly action: {
            readonly function: string
            readonly parameters: readonly { readonly key: string; readonly value: string }[]
          }
        }
      }[]
    }
  }[]
}

const failed = (code: number, status: string, message: string, details: readonly object[] = []): PlatformAnswer => ({
  status: code,
  body: { error: { code, message, status, details } },
})
const UNAUTHENTICATED = failed(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.')

/**
 * The Google Chat API, where access tokens are issued, and what signs its events:
 * https://developers.google.com/workspace/chat/api/reference/rest
 */
export class FakeGoogleChat implements FakePlatform {
  readonly channel = 'google_chat'
  readonly chats = { direct: DIRECT.name, group: ROOM.name, thread: THREAD }
  readonly person = ADA.name
  readonly redelivers = true
  readonly lacks = new Set(['edits of others'] as const)
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly addOnEmail = ADD_ON
  /** Access tokens that were issued. */
  readonly issued: string[] = []
  readonly #isAddOn: boolean
  readonly #shown = new Shown()
  readonly #events = new Map<string, object>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #valid = new Set<string>()
  #isRevoked = false
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 1

  private constructor(isAddOn: boolean) {
    this.#isAddOn = isAddOn
  }
  static async start(options: { readonly addOn?: boolean } = {}): Promise<FakeGoogleChat> {
    const fake = new FakeGoogleChat(options.addOn ?? false)
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get secrets(): readonly string[] {
    return [PEM, PEM.split('\n')[1] ?? PEM, ...this.issued]
  }
  get config() {
    return {
      token: keyFile(ACCOUNT_KEY),
      project_number: PROJECT,
      ...(this.#isAddOn && { endpoint_url: ENDPOINT }),
      base_url: this.origin,
      token_url: `${this.origin}/token`,
      chat_keys_url: `${this.origin}/keys/chat`,
      google_keys_url: `${this.origin}/keys/google`,
    }
  }
  get wrongConfig() {
    return { ...this.config, token: keyFile(OTHER_KEY) }
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
  revokeTokens(): void {
    this.#valid.clear()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? `${placeOf(input).name}/messages/${this.#next++}.x`
    const event =
      this.#events.get(id) ?? (input.button === undefined ? this.#message(input, id) : this.#press(input.button))
    this.#events.set(id, event)
    const { status, body } = await this.post(event)
    if (status !== 200 || body !== '{}') throw new Error(`the webhook answered ${status} ${body}`)
    return id
  }
  /** Sends any event, signed as Google signs. */
  async post(event: object): Promise<{ readonly status: number; readonly body: string }> {
    if (!this.#target) throw new Error('no webhook')
    return this.#target(this.signed(event))
  }
  signed(event: object, claims: object = {}, key: SigningKey = PLATFORM_KEY): PlatformRequest {
    const now = Math.floor(Date.now() / 1000)
    const good = this.#isAddOn
      ? {
          iss: 'https://accounts.google.com',
          aud: ENDPOINT,
          email: ADD_ON,
          email_verified: true,
          iat: now,
          exp: now + 3600,
        }
      : { iss: CHAT, aud: PROJECT, iat: now, exp: now + 3600 }
    return {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${signToken({ ...good, ...claims }, key)}`,
      },
      body: Buffer.from(JSON.stringify(event)),
    }
  }
  forgeries(): readonly PlatformRequest[] {
    const event = this.#message({ text: 'forged' }, `${DIRECT.name}/messages/forged`)
    const good = this.signed(event)
    const now = Math.floor(Date.now() / 1000)
    const common = [
      { ...good, headers: {} },
      { ...good, headers: { authorization: 'Bearer x' } },
      this.signed(event, { aud: '999' }),
      this.signed(event, { iss: 'https://evil.test' }),
      this.signed(event, { exp: now - 600 }),
      this.signed(event, {}, OTHER_KEY),
      this.signed(event, {}, { ...OTHER_KEY, id: PLATFORM_KEY.id }),
    ]
    if (!this.#isAddOn) return common
    return [
      ...common,
      this.signed(event, { email: 'somebody@project.iam.gserviceaccount.com' }),
      this.signed(event, { email: 'service-999@gcp-sa-gsuiteaddons.iam.gserviceaccount.com' }),
      this.signed(event, { email: undefined }),
      this.signed(event, { email_verified: false }),
    ]
  }

  #message(input: PlatformInput, id: string): object {
    const space = placeOf(input)
    const mention = `@${APP.displayName} `
    const message = {
      name: id,
      sender: input.isOwn ? APP : ADA,
      createTime: '2026-11-20T12:00:00.260127Z',
      text: input.mentionsBot ? mention + input.text : input.text,
      argumentText: input.mentionsBot ? ` ${input.text}` : input.text,
      thread: { name: input.threadId ?? `${space.name}/threads/${this.#next++}` },
      ...(input.threadId !== undefined && { threadReply: true }),
      space,
      ...(input.mentionsBot && {
        annotations: [
          {
            type: 'USER_MENTION',
            startIndex: 0,
            length: mention.length - 1,
            userMention: { user: APP, type: 'MENTION' },
          },
        ],
      }),
      ...(input.files && { attachment: input.files.map((file) => this.#keep(id, file)) }),
    }
    return this.#event('message', { message, space, user: message.sender })
  }
  #press(value: string): object {
    const shown = this.sent.at(-1)
    const space = shown?.chatId === ROOM.name ? ROOM : DIRECT
    const message = { name: shown?.id, sender: APP, createTime: '2026-11-20T12:00:00Z', text: shown?.text, space }
    const known = shown?.buttons.find((button) => button.value === value)?.value
    return this.#event('press', { message, space, user: ADA }, known)
  }
  #event(kind: 'message' | 'press', more: { message: object; space: object; user: object }, value?: string): object {
    const eventTime = `2026-11-20T12:00:01.${String(this.#next++).padStart(6, '0')}Z`
    const { message, space, user } = more
    const parameters = { svc: value }
    if (this.#isAddOn)
      return {
        commonEventObject: { hostApp: 'CHAT', platform: 'WEB', ...(kind === 'press' && { parameters }) },
        authorizationEventObject: { systemIdToken: 'x' },
        chat: { eventTime, user, [kind === 'press' ? 'buttonClickedPayload' : 'messagePayload']: { message, space } },
      }
    if (kind === 'message') return { type: 'MESSAGE', eventTime, ...more }
    const action = { actionMethodName: 'svc', parameters: [{ key: 'svc', value }] }
    return { type: 'CARD_CLICKED', eventTime, ...more, action, common: { invokedFunction: 'svc', parameters } }
  }
  #keep(message: string, file: PlatformFile) {
    const resourceName = `${message}/attachments/A${this.#next++}`
    this.#files.set(resourceName, file)
    return {
      name: resourceName,
      contentName: file.name,
      contentType: file.mime,
      source: 'UPLOADED_CONTENT',
      attachmentDataRef: { resourceName },
      downloadUri: 'https://chat.google.com/api/get_attachment_url',
    }
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url } = call
    const { pathname } = url
    if (pathname === '/token') return this.#issue(call)
    if (pathname === '/keys/chat' && !this.#isAddOn) return { status: 200, body: { keys: [PLATFORM_KEY.jwk] } }
    if (pathname === '/keys/google' && this.#isAddOn) return { status: 200, body: { keys: [PLATFORM_KEY.jwk] } }
    if (!this.#valid.has(call.headers.authorization ?? '')) return UNAUTHENTICATED
    const [, media = ''] = /^\/v1\/media\/(.+)$/.exec(decodeURIComponent(pathname)) ?? []
    if (media !== '') return this.#download(media, url)
    const [, space = ''] = /^\/v1\/(spaces\/[^/]+)\/messages$/.exec(pathname) ?? []
    if (space !== '' && method === 'POST') return this.#create(call, space, response)
    const [, id = ''] = /^\/v1\/(spaces\/[^/]+\/messages\/[^/]+)$/.exec(pathname) ?? []
    if (method === 'PATCH' && url.searchParams.get('updateMask') === 'text,accessory_widgets')
      return this.#update(id, call.json as Body)
    if (method === 'DELETE') return this.#shown.remove(id) ? { status: 200, body: {} } : missing(id)
    return this.#violation(`the request ${method} ${pathname}`)
  }

  /** Checks the grant as RFC 7523 says: the signature, who made it, for whom, and for how long. */
  #issue(call: PlatformCall): PlatformAnswer {
    const fields = new URLSearchParams(Buffer.from(call.bytes).toString())
    if (fields.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return this.#violation('the grant')
    const [header = '', payload = '', signature = ''] = (fields.get('assertion') ?? '').split('.')
    const { alg, kid } = partOf(header)
    const { iss, aud, scope, iat, exp } = partOf(payload)
    const key = createPublicKey(ACCOUNT_KEY.privateKey)
    const isSigned = verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))
    if (!isSigned || this.#isRevoked) {
      this.#isRevoked = false
      return { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } }
    }
    const now = Date.now() / 1000
    const isForUs = aud === `${this.origin}/token` || aud === 'https://oauth2.googleapis.com/token'
    if (alg !== 'RS256' || (kid ?? ACCOUNT_KEY.id) !== ACCOUNT_KEY.id || iss !== EMAIL || !isForUs)
      return this.#violation('whose grant it is')
    if (scope !== 'https://www.googleapis.com/auth/chat.bot') return this.#violation('the scope')
    if (Math.abs(Number(iat) - now) > 300 || Number(exp) - Number(iat) > 3600) return this.#violation('the times')
    const token = `ya29.token-${this.#next++}`
    this.issued.push(token)
    this.#valid.add(`Bearer ${token}`)
    return { status: 200, body: { access_token: token, expires_in: 3599, token_type: 'Bearer' } }
  }

  #create(call: PlatformCall, space: string, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return this.#fault(fault, response)
    const body = call.json as Body
    const query = call.url.searchParams
    const problem = problemOf(body, this.#isAddOn)
    if (space !== DIRECT.name && space !== ROOM.name) return this.#violation(`the space ${space}`, 404)
    if (problem !== undefined) return this.#violation(problem)
    const threadId = body.thread?.name
    if (threadId !== undefined && query.get('messageReplyOption') !== 'REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD')
      return this.#violation('a thread without messageReplyOption')
    if (threadId !== undefined && !threadId.startsWith(`${space}/threads/`))
      return this.#violation('a thread of elsewhere')
    const shown = this.#shown.show({
      id: `${space}/messages/S${this.#next++}.S`,
      chatId: space,
      threadId,
      text: body.text ?? '',
      files: [],
      buttons: buttonsOf(body),
      key: query.get('requestId') ?? undefined,
    })
    if (shown.key === undefined) this.violations.push('a message without requestId')
    return fault ? resetConnection(response) : { status: 200, body: { name: shown.id, thread: { name: threadId } } }
  }
  #fault(fault: PlatformFault, response: ServerResponse): PlatformAnswer | undefined {
    if (fault.kind === 'auth') {
      // The key was deleted: what was issued for it no longer counts, and no more is issued.
      this.#valid.clear()
      this.#isRevoked = true
    }
    return answerFault(fault, response, {
      rate_limit: (seconds) =>
        failed(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded for quota metric.', [
          { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'RATE_LIMIT_EXCEEDED' },
          ...(seconds === undefined
            ? []
            : [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${seconds}s` }]),
        ]),
      server_error: failed(503, 'UNAVAILABLE', 'The service is currently unavailable.'),
      permanent: failed(403, 'PERMISSION_DENIED', 'The app is not a member of this space.'),
      auth: UNAUTHENTICATED,
    })
  }
  #update(id: string, body: Body): PlatformAnswer {
    const problem = problemOf(body, this.#isAddOn)
    if (problem !== undefined) return this.#violation(problem)
    return this.#shown.edit(id, body.text ?? '') ? { status: 200, body: { name: id } } : missing(id)
  }
  #download(name: string, url: URL): PlatformAnswer {
    const file = this.#files.get(name)
    if (!file || url.searchParams.get('alt') !== 'media') return missing(name)
    return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
  }

  #violation(what: string, code = 400): PlatformAnswer {
    this.violations.push(what)
    return failed(code, code === 404 ? 'NOT_FOUND' : 'INVALID_ARGUMENT', what)
  }
}

const PEM = ACCOUNT_KEY.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
/** The file that the console makes of a key. */
export function keyFile(key: SigningKey): string {
  return JSON.stringify({
    type: 'service_account',
    project_id: 'project',
    private_key_id: key.id,
    private_key: key.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    client_email: EMAIL,
    token_uri: 'https://evil.test/token',
  })
}

const placeOf = ({ isGroup, threadId }: PlatformInput) => (isGroup || threadId !== undefined ? ROOM : DIRECT)
const missing = (name: string): PlatformAnswer => failed(404, 'NOT_FOUND', `${name} not found.`)
function partOf(part: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}

function problemOf(body: Body, isAddOn: boolean): string | undefined {
  if ((body.text ?? '') === '') return 'a message without a text'
  if (Buffer.byteLength(JSON.stringify(body)) > MAX_BYTES) return 'the message is too big'
  if (body.text?.includes('<users/')) return 'a mention'
  // Add-ons name an address.
  const functions = (body.accessoryWidgets ?? []).flatMap(({ buttonList }) =>
    buttonList.buttons.map(({ onClick }) => onClick.action.function),
  )
  return functions.every((name) => name === (isAddOn ? ENDPOINT : 'svc')) ? undefined : 'the function of a button'
}
function buttonsOf({ accessoryWidgets = [] }: Body) {
  return accessoryWidgets.flatMap(({ buttonList }) =>
    buttonList.buttons.map(({ text, onClick }) => ({ label: text, value: onClick.action.parameters[0]?.value ?? '' })),
  )
}
