import type { ChannelAdapter, ChannelConnection, Destination, OutboundAttachment, OutboundMessage } from 'svc/channels'
import { Refusal } from 'svc/sdk'
import { v7 as uuid } from 'uuid'
import { TestLink } from '../support/platforms/link.ts'
import type { FakePlatform, PlatformFile, PlatformRequest } from '../support/platforms/platform.ts'

/** An adapter with the platform it talks to. */
export class ChannelStage implements AsyncDisposable {
  readonly adapter: ChannelAdapter
  readonly platform: FakePlatform
  readonly test: TestLink
  readonly errors: unknown[] = []
  #connection: ChannelConnection | undefined

  constructor(adapter: ChannelAdapter, platform: FakePlatform, config = platform.config) {
    this.adapter = adapter
    this.platform = platform
    this.test = new TestLink(adapter, config)
    platform.setWebhook((request) => this.receiveWebhook(request))
    platform.setWake?.(() => this.test.wakeNext())
  }

  get connection(): ChannelConnection {
    if (!this.#connection) throw new Error('The stage is not open')
    return this.#connection
  }
  async open(): Promise<ChannelConnection> {
    this.#connection = await this.adapter.open(this.test.link)
    await this.platform.waitForListener?.()
    return this.#connection
  }
  /** Opens the next connection, as the channel host does when one is lost. */
  async reopen(): Promise<ChannelConnection> {
    this.test.renew()
    await this.#connection?.[Symbol.asyncDispose]()
    return this.open()
  }

  /** What the channel host does with a request to the webhook. */
  async receiveWebhook(request: PlatformRequest): Promise<{ status: number; body: string }> {
    const answer = this.connection.webhook?.({
      method: request.method,
      query: new URLSearchParams(request.query),
      header: (name) => request.headers[name],
      headers: () => request.headers,
      body: request.body,
    })
    try {
      const { status, body = '' } = (await answer) ?? { status: 404 }
      return { status, body }
    } catch (error) {
      if (error instanceof Refusal) return { status: error.code === 'unauthorized' ? 401 : 400, body: error.message }
      this.errors.push(error)
      return { status: 500, body: '' }
    }
  }

  /** The result of a call that has to fail. */
  async failureOf(run: () => Promise<unknown>): Promise<unknown> {
    try {
      await run()
    } catch (error) {
      this.errors.push(error)
      return error
    }
    throw new Error('The call succeeded')
  }

  message(text: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
    const to: Destination = { chatId: this.platform.chats.direct }
    return { id: uuid(), to, text, plainText: text, attachments: [], ...more }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.test.abort()
    await this.#connection?.[Symbol.asyncDispose]()
    await this.test[Symbol.asyncDispose]()
    await this.platform[Symbol.asyncDispose]()
  }
}

export function attachmentOf(file: PlatformFile): OutboundAttachment {
  const { kind, name, mime, bytes } = file
  return { kind, name, mime, size: bytes.length, bytes: async () => bytes }
}
