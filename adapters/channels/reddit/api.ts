import * as v from 'valibot'
import { ApiClient, KeptTokens, RecentMap, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type { RedditConfig } from './config.ts'
import { encodeMessage } from './encode.ts'
import type { Encoded } from './encode.ts'
import { findAuthError, findError, limitOf } from './errors.ts'
import { Account, Item, Listing, Sent, Token } from './wire.ts'

const PAGE = 100
/** Reddit takes so many names at once. */
const MAX_NAMES = 25
/** With fewer requests left than this, polls wait until there are more. */
const FEW_REQUESTS = 10
/** Answers whose next part is written below the last one. */
const MAX_ANSWERS = 1000
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const Context = v.object({ name: v.string() })

/** The requests of one account. */
export class RedditApi {
  readonly #link: ChannelLink<RedditConfig>
  readonly #tokens: KeptTokens<typeof Token>
  readonly #client: ApiClient
  /** What was written last in answer to something. */
  readonly #answers = new RecentMap<string, string>(MAX_ANSWERS)
  #pauseSecs = 0

  constructor(link: ChannelLink<RedditConfig>) {
    const { client_id: clientId, token, username, password, user_agent: userAgent } = link.config
    const basic = Buffer.from(`${clientId}:${token}`).toString('base64')
    const secrets = [token, password, basic]
    const common = { system: 'reddit', secrets, refuseRedirects: true }
    const auth = new ApiClient(link, {
      ...common,
      findError: findAuthError,
      authenticate: () => ({ authorization: `Basic ${basic}`, 'user-agent': userAgent }),
    })
    const form = new URLSearchParams({ grant_type: 'password', username, password })
    const url = `${trimSlashes(link.config.auth_url)}/api/v1/access_token`
    this.#link = link
    this.#tokens = new KeptTokens(link, {
      schema: Token,
      owner: [url, clientId, token, username, password],
      obtain: () => auth.json(url, { body: form.toString(), headers: FORM }, Token, 'the access token'),
    })
    this.#client = new ApiClient(link, {
      ...common,
      findError: (answer) => {
        const limit = limitOf(answer)
        if (limit) this.#pauseSecs = limit.remaining < FEW_REQUESTS ? limit.resetSecs : 0
        return findError(answer)
      },
      authenticate: async () => ({
        authorization: `Bearer ${(await this.#tokens.current()).access_token}`,
        'user-agent': userAgent,
      }),
    })
  }

  /** Seconds until Reddit takes more requests; 0 while enough are left. */
  get pauseSecs(): number {
    return this.#pauseSecs
  }

  account = () => this.#call('/api/v1/me', {}, Account, 'the account')

  /** Newest first. */
  list = (path: string, after: string | undefined, signal?: AbortSignal) => {
    const query = new URLSearchParams({ raw_json: '1', limit: String(PAGE), ...(after !== undefined && { after }) })
    // The inbox stays unread until its messages are durable.
    if (path === '/message/unread') query.set('mark', 'false')
    return this.#call(`${path}?${query}`, signal ? { signal } : {}, Listing, 'a list')
  }

  async markRead(names: readonly string[]): Promise<void> {
    for (let at = 0; at < names.length; at += MAX_NAMES) {
      const fields = new URLSearchParams({ id: names.slice(at, at + MAX_NAMES).join(',') })
      const request = { body: fields.toString(), headers: FORM }
      await this.#tokens.renewing(() => this.#client.open(this.#url('/api/read_message'), request))
    }
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const context = v.safeParse(Context, message.to.replyContext)
    const answered = context.success ? context.output.name : message.to.threadId
    const last = answered === undefined ? undefined : this.#answers.get(answered)
    const parent = message.replyTo ?? last ?? answered
    const encoded = encodeMessage(message, parent, this.#link.config.subject)
    const earlier = message.mayBeSent ? await this.#findSent(encoded) : undefined
    const id = earlier ?? (await this.#post(encoded))
    if (answered !== undefined && id !== '') this.#answers.set(answered, id)
    return { id, ...(earlier !== undefined && { wasSentBefore: true }) }
  }

  async #post({ path, fields }: Encoded): Promise<string> {
    const request = { body: fields.toString(), headers: FORM }
    const { json } = await this.#call(`${path}?raw_json=1`, request, Sent, 'the sent message')
    return json.data?.things?.[0]?.data.name ?? ''
  }

  /** Reddit has no key for messages that are sent again, but comments of the account can be looked through. */
  async #findSent({ path, fields }: Encoded): Promise<string | undefined> {
    const parent = fields.get('thing_id')
    if (path !== '/api/comment' || parent?.startsWith('t4_')) return undefined
    const { data } = await this.list(`/user/${this.#link.config.username}/comments`, undefined)
    const comments = data.children.flatMap((raw) => (v.is(Item, raw) ? [raw.data] : []))
    const text = fields.get('text')?.trim()
    return comments.find(({ parent_id: id, body }) => id === parent && body.trim() === text)?.name
  }

  #call<S extends v.GenericSchema>(
    path: string,
    request: ApiRequest,
    schema: S,
    what: string,
  ): Promise<v.InferOutput<S>> {
    return this.#tokens.renewing(() => this.#client.json(this.#url(path), request, schema, what))
  }

  #url(path: string): string {
    return `${trimSlashes(this.#link.config.base_url)}${path}`
  }
}
