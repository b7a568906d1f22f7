import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput, PlatformRequest, WebhookTarget } from './platform.ts'

const TOKEN = 'a-shared-secret-of-32-characters'
const hmac = (content: string, secret = TOKEN): string =>
  `sha256=${createHmac('sha256', secret).update(content).digest('hex')}`

/** A program at the other end of the generic webhook: it checks both signatures of what it is sent. */
export class FakeWebhook implements FakePlatform {
  readonly channel = 'webhook'
  readonly secrets = [TOKEN]
  readonly chats = { direct: 'ada', group: 'team', thread: 't-1' }
  readonly person = 'ada'
  readonly redelivers = true
  readonly faults = allFaults
  readonly typing: string[] = []
  readonly reactions = []
  readonly violations: string[] = []
  readonly #shown = new Shown()
  readonly #server: PlatformServer
  readonly #bodies = new Map<string, string>()
  #target: WebhookTarget | undefined
  #next = 1

  private constructor(server: PlatformServer) {
    this.#server = server
  }
  static async start(): Promise<FakeWebhook> {
    const held: { fake?: FakeWebhook } = {}
    const server = await startPlatformServer((call, response) => held.fake?.handle(call, response))
    held.fake = new FakeWebhook(server)
    return held.fake
  }

  get origin(): string {
    return this.#server.origin
  }
  get config() {
    return { token: TOKEN, callback_url: `${this.#server.origin}/callback` }
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
    await this.#server[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? `m-${this.#next++}`
    const body = this.#bodies.get(id) ?? JSON.stringify(bodyOf(input, id))
    this.#bodies.set(id, body)
    const answer = await this.#target?.(signed(body))
    if (answer?.status !== 200) throw new Error(`the webhook answered ${answer?.status}: ${answer?.body}`)
    return id
  }
  forgeries(): readonly PlatformRequest[] {
    const body = JSON.stringify(bodyOf({ text: 'forged' }, 'm-forged'))
    const good = signed(body)
    const headers = (changes: Readonly<Record<string, string>>) => ({
      ...good,
      headers: { ...good.headers, ...changes },
    })
    const stamp = String(Date.now())
    const old = String(Date.now() - 301_000)
    return [
      { ...good, headers: {} },
      { ...good, headers: { 'x-webhook-timestamp': stamp, 'x-webhook-signature': hmac(body, 'another secret') } },
      { ...good, body: Buffer.from(body.replace('forged', 'altered')) },
      headers({ 'x-webhook-timestamp': old }),
      // The old signature with a new time.
      headers({ 'x-webhook-timed-signature': hmac(`${old}.${body}`) }),
    ]
  }

  /** Answers one request. */
  handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    if (call.method === 'HEAD') return { status: 405 }
    const text = Buffer.from(call.bytes).toString()
    const stamp = String(call.headers['x-webhook-timestamp'])
    if (call.headers['x-webhook-signature'] !== hmac(text)) return this.#violation('the signature is wrong', 401)
    if (call.headers['x-webhook-timed-signature'] !== hmac(`${stamp}.${text}`))
      return this.#violation('the timed signature is wrong', 401)
    const fault = this.#shown.takeFault()
    const answer = faultAnswer(fault)
    if (answer) return answer
    if (fault?.kind === 'reset') return resetConnection(response)
    const body = call.json as Record<string, string>
    if (call.headers['idempotency-key'] !== body['message_id']) return this.#violation('there is no idempotency key')
    if ((body['message'] ?? '').length > 65_535) return this.#violation('the message is too long')
    this.#shown.show({
      id: body['message_id'] ?? '',
      chatId: body['recipient_id'] ?? '',
      threadId: body['thread_id'],
      text: body['message'] ?? '',
      replyTo: body['reply_to'],
      files: [],
      buttons: [],
      key: body['message_id'],
    })
    return fault?.kind === 'lost_answer' ? resetConnection(response) : { status: 200, body: {} }
  }
  #violation(what: string, status = 400): PlatformAnswer {
    this.violations.push(what)
    return { status, body: { error: what } }
  }
}

function faultAnswer(fault: PlatformFault | undefined): PlatformAnswer | undefined {
  if (fault?.kind === 'rate_limit')
    return {
      status: 429,
      ...(fault.retryAfterSecs !== undefined && { headers: { 'retry-after': String(fault.retryAfterSecs) } }),
    }
  if (fault?.kind === 'server_error') return { status: 503 }
  if (fault?.kind === 'permanent') return { status: 400, body: { error: 'no such recipient' } }
  if (fault?.kind === 'auth') return { status: 401 }
  return undefined
}

function bodyOf(input: PlatformInput, id: string) {
  return {
    sender_id: input.isOwn ? 'svc:default' : 'ada',
    sender_name: 'Ada',
    message: input.text,
    ...(input.isGroup && { is_group: true, chat_id: 'team', mentions_bot: input.mentionsBot === true }),
    ...(input.threadId !== undefined && { thread_id: input.threadId }),
    ...(input.replyTo !== undefined && { reply_to: input.replyTo }),
    metadata: { message_id: id },
  }
}

function signed(body: string): PlatformRequest {
  const stamp = String(Date.now())
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-webhook-timestamp': stamp,
      'x-webhook-signature': hmac(body),
      'x-webhook-timed-signature': hmac(`${stamp}.${body}`),
    },
    body: Buffer.from(body),
  }
}
