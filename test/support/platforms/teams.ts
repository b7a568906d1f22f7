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

const APP = '3f1c2a52-7b0e-4a51-9f55-0d5f1f4f8a11'
const TENANT = '9c1f5d30-1111-4222-8333-444455556666'
const SECRET = 'client-secret~of.the_bot'
const BOT = { id: `28:${APP}`, name: 'Helper' }
const ADA = { id: '29:1ada', name: 'Ada', aadObjectId: '0a0a0a0a-aaaa-4bbb-8ccc-dddddddddddd' }
const DIRECT = 'a:1direct'
const CHANNEL = '19:general@thread.tacv2'
const POST = '1763640000001'
const REACTIONS: Readonly<Record<string, string>> = { like: '👍', '1f440_eyes': '👀' }
const KEY = makeSigningKey('key-1', { endorsements: ['msteams', 'webchat'] })
const OTHER = makeSigningKey('key-of-skype', { endorsements: ['skype'] })
/** What fits into a message, in bytes of UTF-16. */
const MAX_BYTES = 100_000

type Activity = Readonly<Record<string, unknown>> & { readonly id: string }
interface Sent {
  readonly type?: string
  readonly text?: string
  readonly textFormat?: string
  readonly attachments?: readonly {
    readonly contentType: string
    readonly content: { readonly actions: readonly Action[] }
  }[]
}
interface Action {
  readonly type: string
  readonly title: string
  readonly data: { readonly svc: string }
}

const failed = (status: number, code: string, message = code, headers = {}): PlatformAnswer => ({
  status,
  headers,
  body: { error: { code, message } },
})
const UNAUTHORIZED: PlatformAnswer = {
  status: 401,
  body: { message: 'Authorization has been denied for this request.' },
}

/**
 * The Bot Connector of Teams, and who issues and signs its tokens:
 * https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication
 */
export class FakeTeams implements FakePlatform {
  readonly channel = 'teams'
  readonly chats = { direct: DIRECT, group: CHANNEL, thread: POST }
  readonly person = ADA.aadObjectId
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** The regions that were asked, in order. */
  readonly regions: string[] = []
  /** Access tokens that were issued. */
  readonly issued: string[] = []
  /** Reads of the published keys. */
  keyReads = 0
  /** The key that signs now. */
  key: SigningKey = KEY
  readonly #shown = new Shown()
  readonly #activities = new Map<string, Activity>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #valid = new Set<string>()
  #isRevoked = false
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 1

  static async start(): Promise<FakeTeams> {
    const fake = new FakeTeams()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get secrets(): readonly string[] {
    return [SECRET, ...this.issued, 'tempauth']
  }
  get config() {
    return {
      token: SECRET,
      app_id: APP,
      tenant_id: TENANT,
      base_url: `${this.origin}/teams`,
      login_url: this.origin,
      metadata_url: `${this.origin}/v1/.well-known/openidconfiguration`,
    }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong-client-secret' }
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
  /** As when an administrator ends what was issued. */
  revokeTokens(): void {
    this.#valid.clear()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#activities.get(input.redeliveryOf ?? '')
    const activity = known ?? (input.editOf === undefined ? this.#create(input) : this.#edit(input.editOf, input.text))
    const { status } = await this.post(activity)
    if (status !== 200) throw new Error(`the webhook answered ${status}`)
    return activity.id
  }
  /** Sends any activity, signed as Teams signs. */
  async post(activity: object): Promise<{ readonly status: number; readonly body: string }> {
    if (!this.#target) throw new Error('no webhook')
    return this.#target(this.signed(activity))
  }
  signed(activity: object, claims: object = {}, key: SigningKey = this.key): PlatformRequest {
    const now = Math.floor(Date.now() / 1000)
    const { serviceUrl } = activity as { readonly serviceUrl?: string }
    const good = {
      iss: 'https://api.botframework.com',
      aud: APP,
      nbf: now - 300,
      exp: now + 3600,
      serviceurl: serviceUrl,
    }
    return {
      method: 'POST',
      headers: {
        'content-type': 'application/json; charset=utf-8',
        authorization: `Bearer ${signToken({ ...good, ...claims }, key)}`,
      },
      body: Buffer.from(JSON.stringify(activity)),
    }
  }
  /** An activity that nothing was done with yet. */
  activity(more: object = {}): Activity {
    const id = `176364000${String(this.#next++).padStart(4, '0')}`
    return {
      type: 'message',
      id,
      timestamp: '2026-11-20T12:00:00.123Z',
      serviceUrl: `${this.origin}/emea/`,
      channelId: 'msteams',
      from: ADA,
      recipient: BOT,
      conversation: { id: DIRECT, conversationType: 'personal', tenantId: TENANT },
      channelData: { tenant: { id: TENANT } },
      locale: 'en-GB',
      textFormat: 'plain',
      ...more,
    }
  }
  forgeries(): readonly PlatformRequest[] {
    const now = Math.floor(Date.now() / 1000)
    const activity = this.activity({ text: 'forged' })
    const good = this.signed(activity)
    const { authorization: _, ...unsigned } = good.headers
    return [
      { ...good, headers: unsigned },
      { ...good, headers: { ...unsigned, authorization: 'HMAC bm90IGEgdG9rZW4=' } },
      this.signed(activity, { iss: 'https://login.microsoftonline.com/' }),
      this.signed(activity, { aud: 'another bot' }),
      this.signed(activity, { exp: now - 600 }),
      this.signed(activity, { serviceurl: 'https://smba.trafficmanager.net/teams/' }),
      this.signed(activity, { serviceurl: undefined }),
      this.signed({ ...activity, channelId: 'webchat' }),
      this.signed(activity, {}, OTHER),
      this.signed(activity, {}, { ...OTHER, id: this.key.id }),
      { ...good, body: Buffer.from(JSON.stringify({ ...activity, serviceUrl: 'https://evil.test/' })) },
    ]
  }

  #create(input: PlatformInput): Activity {
    const isChannel = input.isGroup || input.threadId !== undefined
    const attachments = (input.files ?? []).map((file) => this.#keep(file))
    const mention = `<at>${BOT.name}</at>`
    const entities = input.mentionsBot ? [{ type: 'mention', mentioned: BOT, text: mention }] : []
    const press =
      input.button === undefined ? {} : { value: this.#dataOf(input.button), replyToId: this.sent.at(-1)?.id }
    const activity = this.activity({
      from: input.isOwn ? BOT : ADA,
      text: input.mentionsBot ? `${mention} ${input.text}` : input.text,
      entities: [...entities, { type: 'clientInfo', locale: 'en-GB', platform: 'Web' }],
      attachments: [...attachments, { contentType: 'text/html', content: `<p>${input.text}</p>` }],
      ...press,
    })
    const shown = isChannel ? this.#inChannel(activity, input.threadId ?? activity.id) : activity
    this.#activities.set(shown.id, shown)
    return shown
  }
  #inChannel(activity: Activity, post: string): Activity {
    return {
      ...activity,
      conversation: {
        id: `${CHANNEL};messageid=${post}`,
        conversationType: 'channel',
        isGroup: true,
        tenantId: TENANT,
      },
      channelData: {
        tenant: { id: TENANT },
        team: { id: '19:team@thread.tacv2' },
        channel: { id: CHANNEL, name: 'General' },
      },
    }
  }
  #edit(id: string, text: string): Activity {
    const { channelData, ...activity } = this.#activities.get(id) ?? this.activity()
    return {
      ...activity,
      id,
      type: 'messageUpdate',
      text,
      channelData: { ...Object(channelData), eventType: 'editMessage' },
    }
  }
  #dataOf(value: string): unknown {
    const { value: known } = this.sent.at(-1)?.buttons.find((button) => button.value === value) ?? {}
    return known === undefined ? undefined : { svc: known }
  }
  /** Pictures are in the text, and other files in OneDrive. */
  #keep(file: PlatformFile) {
    const id = `file-${this.#next++}`
    this.#files.set(id, file)
    if (file.kind === 'image')
      return { contentType: 'image/*', contentUrl: `${this.origin}/emea/v3/attachments/${id}/views/original` }
    return {
      contentType: 'application/vnd.microsoft.teams.file.download.info',
      contentUrl: `${this.origin}/personal/${id}`,
      name: file.name,
      content: {
        downloadUrl: `${this.origin}/onedrive/${id}?tempauth=x`,
        uniqueId: id,
        fileType: file.name.split('.').at(-1),
      },
    }
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url } = call
    const { pathname } = url
    if (pathname === `/${TENANT}/oauth2/v2.0/token`) return this.#issue(call)
    if (pathname.endsWith('/oauth2/v2.0/token')) {
      const description = 'AADSTS90002: Tenant not found.\r\nTrace ID: 1'
      return { status: 400, body: { error: 'invalid_request', error_description: description } }
    }
    if (pathname === '/v1/.well-known/openidconfiguration')
      return {
        status: 200,
        body: { issuer: 'https://api.botframework.com', jwks_uri: `${this.origin}/v1/.well-known/keys` },
      }
    if (pathname === '/v1/.well-known/keys') {
      this.keyReads++
      return { status: 200, body: { keys: [this.key.jwk, OTHER.jwk] } }
    }
    if (pathname.startsWith('/onedrive/')) return this.#download(call)
    if (!this.#valid.has(call.headers.authorization ?? '')) return UNAUTHORIZED
    const [, region = '', rest = ''] = /^\/(teams|emea)\/v3\/(.+)$/.exec(pathname) ?? []
    this.regions.push(region)
    const [, file = ''] = /^attachments\/([^/]+)\/views\/original$/.exec(rest) ?? []
    if (file !== '') return this.#content(file)
    const [, conversation = '', activity = '', reaction = ''] =
      /^conversations\/([^/]+)\/activities(?:\/([^/]+)(?:\/reactions\/([^/]+))?)?$/.exec(rest) ?? []
    const place = placeOf(decodeURIComponent(conversation))
    if (!place) return this.#violation(`the request ${method} ${pathname}`, 404, 'ConversationNotFound')
    if (reaction !== '') return this.#react(method, activity, decodeURIComponent(reaction))
    if (activity === '' && method === 'POST') return this.#send(call, place, response)
    if (method === 'PUT') return this.#update(activity, call.json as Sent)
    if (method === 'DELETE')
      return this.#shown.remove(activity) ? { status: 200 } : failed(404, 'ActivityNotFoundInConversation')
    return this.#violation(`the request ${method} ${pathname}`)
  }

  #issue(call: PlatformCall): PlatformAnswer {
    const fields = new URLSearchParams(Buffer.from(call.bytes).toString())
    const isComplete =
      fields.get('grant_type') === 'client_credentials' &&
      fields.get('client_id') === APP &&
      fields.get('scope') === 'https://api.botframework.com/.default'
    if (!isComplete) return this.#violation('the fields of a grant')
    if (fields.get('client_secret') !== SECRET || this.#isRevoked) {
      this.#isRevoked = false
      const description = 'AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1'
      return { status: 401, body: { error: 'invalid_client', error_description: description } }
    }
    const token = `access-token-${this.#next++}`
    this.issued.push(token)
    this.#valid.add(`Bearer ${token}`)
    return { status: 200, body: { token_type: 'Bearer', expires_in: 3599, access_token: token } }
  }

  #send(call: PlatformCall, { chatId, threadId }: Place, response: ServerResponse): PlatformAnswer | undefined {
    const sent = call.json as Sent
    if (sent?.type === 'typing') {
      this.typing.push(chatId)
      return { status: 201, body: {} }
    }
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return this.#fault(fault, response)
    const problem = problemOf(sent)
    if (problem !== undefined) return this.#violation(problem)
    const id = `176364100${String(this.#next++).padStart(4, '0')}`
    this.#shown.show({ id, chatId, threadId, text: sent.text ?? '', files: [], buttons: buttonsOf(sent) })
    return fault ? resetConnection(response) : { status: 201, body: { id } }
  }
  #fault(fault: PlatformFault, response: ServerResponse): PlatformAnswer | undefined {
    if (fault.kind === 'auth') {
      // The secret was taken back: what was issued for it no longer counts, and no more is issued.
      this.#valid.clear()
      this.#isRevoked = true
    }
    return answerFault(fault, response, {
      rate_limit: (seconds) =>
        failed(
          429,
          'TooManyRequests',
          'Too many requests',
          seconds === undefined ? {} : { 'retry-after': String(seconds) },
        ),
      server_error: failed(502, 'BadGateway'),
      permanent: failed(403, 'BotNotInConversationRoster', 'The bot is not part of the conversation roster.'),
      auth: UNAUTHORIZED,
    })
  }
  #update(id: string, sent: Sent): PlatformAnswer {
    const problem = problemOf(sent)
    if (problem !== undefined) return this.#violation(problem)
    return this.#shown.edit(id, sent.text ?? '')
      ? { status: 200, body: { id } }
      : failed(404, 'ActivityNotFoundInConversation')
  }
  #react(method: string, messageId: string, type: string): PlatformAnswer {
    const emoji = REACTIONS[type]
    if (method !== 'PUT' || emoji === undefined) return this.#violation(`the reaction ${type}`)
    this.reactions.push({ messageId, emoji })
    return { status: 200 }
  }

  #content(id: string): PlatformAnswer {
    const file = this.#files.get(id)
    return file ? { status: 200, body: file.bytes, headers: { 'content-type': file.mime } } : failed(404, 'NotFound')
  }
  #download({ url, headers }: PlatformCall): PlatformAnswer {
    if (headers.authorization !== undefined) this.violations.push('the access token was sent to OneDrive')
    if (url.searchParams.get('tempauth') !== 'x') return { status: 401 }
    return this.#content(url.pathname.slice('/onedrive/'.length))
  }

  #violation(what: string, status = 400, code = 'BadArgument'): PlatformAnswer {
    this.violations.push(what)
    return failed(status, code, what)
  }
}

interface Place {
  readonly chatId: string
  readonly threadId: string | undefined
}
function placeOf(conversation: string): Place | undefined {
  if (conversation === DIRECT) return { chatId: DIRECT, threadId: undefined }
  const [, threadId] = /^19:general@thread\.tacv2(?:;messageid=(\d+))?$/.exec(conversation) ?? []
  return conversation.startsWith(CHANNEL) ? { chatId: CHANNEL, threadId } : undefined
}

function problemOf(sent: Sent): string | undefined {
  if (sent?.type !== 'message' || sent.textFormat !== 'markdown') return 'an activity of another type'
  if ((sent.text ?? '') === '' && (sent.attachments ?? []).length === 0) return 'an empty message'
  if (JSON.stringify(sent).length * 2 > MAX_BYTES) return 'the message is too big'
  const isCard = ({ contentType, content }: NonNullable<Sent['attachments']>[number]): boolean =>
    contentType === 'application/vnd.microsoft.card.adaptive' && content.actions.length <= 6
  return (sent.attachments ?? []).every(isCard) ? undefined : 'an attachment that is no card'
}
function buttonsOf({ attachments = [] }: Sent) {
  return attachments.flatMap(({ content }) =>
    content.actions.map(({ title, data }) => ({ label: title, value: data.svc })),
  )
}
