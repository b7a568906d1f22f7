import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type {
  ChannelAdapter,
  ChannelConnection,
  ChannelLink,
  ConnectionEnd,
  OutboundMessage,
  WebhookAnswer,
  WebhookRequest,
} from 'svc/channels'
import { fileOnly, Refusal, secret, UpstreamFailure } from 'svc/sdk'

const Config = v.object({
  token: secret(
    v.pipe(v.string(), v.minLength(4, 'expected at least 4 characters'), v.description('Token of the bot.')),
  ),
  base_url: v.optional(v.pipe(v.string(), v.url(), v.description('Address of the platform.')), 'https://chat.example'),
  rooms: v.optional(v.array(v.string()), []),
  depth: v.optional(v.pipe(v.number(), v.integer()), 1),
  trusts_everybody: fileOnly('strangers could get in', v.optional(v.boolean(), false)),
})
type Link = ChannelLink<v.InferOutput<typeof Config>>

/** A platform in memory, with everything a test wants to know of the adapter that speaks to it. */
export class FakePlatform {
  readonly links: Link[] = []
  readonly sent: OutboundMessage[] = []
  disposed = 0
  /** What `open` does before it returns. */
  onOpen: (link: Link) => Promise<void> = async () => undefined
  signIn: NonNullable<ChannelAdapter['signIn']> = async function* () {}
  onDispose: () => Promise<void> = async () => undefined
  warnings: readonly string[] = []
  usesSignIn = true
  #opened: ((link: Link) => void)[] = []
  #close: ((end: ConnectionEnd) => void) | undefined

  /** The next connection that opens. */
  nextOpen(): Promise<Link> {
    return new Promise((resolve) => this.#opened.push(resolve))
  }
  /** The platform ends the newest connection. */
  close(end: ConnectionEnd): void {
    this.#close?.(end)
  }

  adapter(overrides: Partial<ChannelAdapter> = {}): ChannelAdapter {
    return {
      ...defineAdapter({
        config: Config,
        capabilities: {
          dialect: 'plain',
          maxLength: 100,
          lengthUnit: 'characters',
          idempotentSend: true,
          rate: { overall: { perSecond: 1000, burst: 1000 } },
        },
        open: (link) => this.#open(link),
        probe: async ({ config }) => {
          if (config.token === 'wrong-token')
            throw new UpstreamFailure('test_chat', 'the token is wrong', { reason: 'auth', retry: 'never' })
          return { account: '@bot' }
        },
      }),
      ...overrides,
    }
  }
  /** Makes it the adapter of the channel `test_chat`. */
  install(overrides: Partial<ChannelAdapter> = {}): void {
    Reflect.set(globalThis, Symbol.for('svc.test.adapter'), this.adapter(overrides))
  }

  async #open(link: Link): Promise<ChannelConnection> {
    this.links.push(link)
    await this.onOpen(link)
    if (link.config.token === 'wrong-token')
      throw new UpstreamFailure('test_chat', 'the token wrong-token was refused', { reason: 'auth', retry: 'never' })
    const { promise: closed, resolve } = Promise.withResolvers<ConnectionEnd>()
    this.#close = resolve
    for (const opened of this.#opened.splice(0)) opened(link)
    return {
      closed,
      send: async (message) => {
        this.sent.push(message)
        return { id: `m-${this.sent.length}` }
      },
      webhook: (request) => this.#webhook(link, request),
      warnings: () => this.warnings,
      [Symbol.asyncDispose]: async () => {
        this.disposed++
        await this.onDispose()
      },
    }
  }

  async #webhook(link: Link, { header, body, method, query }: WebhookRequest): Promise<WebhookAnswer> {
    if (method === 'GET') return { status: 200, body: query.get('challenge') ?? '' }
    if (header('x-token') !== link.config.token) throw new Refusal('unauthorized', 'wrong')
    return { status: 200, headers: { 'content-type': 'text/plain' }, body: `${body.byteLength} bytes` }
  }
}
