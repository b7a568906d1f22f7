import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, KeptTokens, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import { partsOf } from './comment-urn.ts'
import type { LinkedInConfig } from './config.ts'
import { encodeComment, encodePost, encodeUrn } from './encode.ts'
import { findAuthError, findError } from './errors.ts'
import { Introspection, List, Organization, Renewed, ReplyContext, Sent, Tokens } from './wire.ts'

export const PAGE = 50
const CLOSED: ReadonlySet<string> = new Set(['not_found', 'invalid_request'])

/** The requests of one organization. */
export class LinkedInApi {
  readonly #link: ChannelLink<LinkedInConfig>
  readonly #tokens: KeptTokens<typeof Tokens>
  readonly #auth: ApiClient
  readonly #client: ApiClient

  constructor(link: ChannelLink<LinkedInConfig>) {
    const { token, refresh_token: refresh, client_secret: clientSecret, api_version: version } = link.config
    const common = { system: 'linkedin', secrets: [token, refresh ?? '', clientSecret ?? ''], refuseRedirects: true }
    this.#link = link
    this.#auth = new ApiClient(link, { ...common, findError: findAuthError })
    this.#client = new ApiClient(link, {
      ...common,
      findError,
      authenticate: async () => ({
        authorization: `Bearer ${(await this.#tokens.current()).access}`,
        'linkedin-version': version,
        'x-restli-protocol-version': '2.0.0',
      }),
    })
    this.#tokens = new KeptTokens(link, {
      schema: Tokens,
      owner: [token, refresh],
      obtain: (rejected) => this.#obtain(rejected),
    })
  }

  /** Of the organization. */
  get urn(): string {
    return `urn:li:organization:${this.#link.config.organization}`
  }

  organization = async () => {
    const path = `/organizations/${this.#link.config.organization}`
    return (await this.#call(path, {}, Organization, 'the organization')).localizedName
  }

  /** When the token ends, in milliseconds, where nothing renews it; `undefined` where LinkedIn does not tell. */
  async tokenEnd(): Promise<number | undefined> {
    const { client_id: id, client_secret: secret, refresh_token: refresh } = this.#link.config
    if (id === undefined || secret === undefined || refresh !== undefined) return undefined
    const { access } = await this.#tokens.current()
    const fields = { client_id: id, client_secret: secret, token: access }
    const { expires_at: end } = await this.#askAuth('/introspectToken', fields, Introspection)
    return end === undefined ? undefined : end * 1000
  }

  /** Comments on posts of the organization that were written in a time, in milliseconds. */
  notifications = async (from: number, until: number, start: number, signal: AbortSignal) => {
    const organization = encodeUrn(this.urn)
    const range = `(start:${from},end:${until})`
    // Brackets that mean something stay as they are.
    const query = `q=criteria&actions=List(COMMENT)&organizationalEntity=${organization}&timeRange=${range}`
    const path = `/organizationalEntityNotifications?${query}&start=${start}&count=${PAGE}`
    return (await this.#call(path, { signal }, List, 'the list of notifications')).elements
  }

  /** A comment, not yet checked; `undefined` when it is gone, or closed to the organization. */
  async comment(urn: string, signal: AbortSignal): Promise<unknown> {
    const { post = '', id = '' } = partsOf(urn) ?? {}
    try {
      return await this.#call(`/socialActions/${encodeUrn(post)}/comments/${id}`, { signal }, v.unknown(), 'a comment')
    } catch (error) {
      if (error instanceof UpstreamFailure && CLOSED.has(error.reason)) return undefined
      throw error
    }
  }

  async send({ to, text }: OutboundMessage): Promise<SentMessage> {
    const context = v.safeParse(ReplyContext, to.replyContext ?? contextOf(to.threadId))
    if (context.success) {
      const path = `/socialActions/${encodeUrn(context.output.parent)}/comments`
      const json = encodeComment(this.urn, text, context.output)
      return { id: (await this.#call(path, { json }, Sent, 'the sent comment')).commentUrn }
    }
    const json = encodePost(this.urn, text)
    const answer = await this.#tokens.renewing(() => this.#client.open(this.#url('/posts'), { json }))
    const id = answer.header('x-restli-id')
    // The body of this answer is empty.
    if (id !== undefined) return { id }
    throw new UpstreamFailure('linkedin', 'linkedin sent the post in a form that cannot be read', {
      reason: 'malformed',
      retry: 'later',
    })
  }

  async #obtain(rejected: Tokens | undefined): Promise<Tokens> {
    const { token, refresh_token: refresh, client_id: id, client_secret: secret } = this.#link.config
    if (!rejected) return { access: token, refresh }
    if (rejected.refresh === undefined || id === undefined || secret === undefined)
      throw new UpstreamFailure(
        'linkedin',
        'the token has ended: get another one, or set `refresh_token`, `client_id` and `client_secret`',
        { reason: 'auth', retry: 'never' },
      )
    const fields = {
      grant_type: 'refresh_token',
      refresh_token: rejected.refresh,
      client_id: id,
      client_secret: secret,
    }
    const renewed = await this.#askAuth('/accessToken', fields, Renewed)
    return { access: renewed.access_token, refresh: renewed.refresh_token ?? rejected.refresh }
  }

  #askAuth<S extends v.GenericSchema>(path: string, fields: Record<string, string>, schema: S) {
    const request = {
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }
    return this.#auth.json(`${trimSlashes(this.#link.config.auth_url)}${path}`, request, schema, 'the token')
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

/** A thread is the comment that began it; the post is a part of its URN. */
function contextOf(thread: string | undefined): ReplyContext | undefined {
  const parts = partsOf(thread)
  return thread === undefined || !parts ? undefined : { object: parts.post, parent: thread }
}
