import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { GatewayFrame, readWebhookBody, verifyTimestamp } from 'svc/channels'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'
import { WebhookKey } from './signature.ts'
import { Validation } from './wire.ts'

const Op = { dispatch: 0, heartbeat: 1, heartbeatAck: 11, dispatchAck: 12, validation: 13 } as const
const WINDOW_MS = 300_000

export interface WebhookDeps {
  readonly appId: string
  readonly secret: string
  /** Deals with an event. Settles when it is durable. */
  readonly dispatch: (type: string, data: unknown) => Promise<void>
  readonly now: () => number
}

/** Answers the requests of QQ, which wants to hear within three seconds. */
export class Webhook {
  readonly #deps: WebhookDeps
  readonly #key: WebhookKey

  constructor(deps: WebhookDeps) {
    this.#deps = deps
    this.#key = new WebhookKey(deps.secret)
  }

  async answer(request: WebhookRequest): Promise<WebhookAnswer> {
    if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
    this.#verify(request)
    const { op, t: type, d: data } = frameOf(request)
    if (op === Op.validation) return this.#validate(data)
    if (op === Op.heartbeat) return json({ op: Op.heartbeatAck, d: data })
    if (op === Op.dispatch && type != null) await this.#deps.dispatch(type, data)
    return json({ op: Op.dispatchAck, d: 0 })
  }

  #verify(request: WebhookRequest): void {
    const timestamp = request.header('x-signature-timestamp') ?? ''
    verifyTimestamp(/^\d{1,12}$/.test(timestamp) ? Number(timestamp) * 1000 : NaN, this.#deps.now(), WINDOW_MS)
    this.#key.verify(Buffer.concat([Buffer.from(timestamp), request.body]), request.header('x-signature-ed25519'))
    const appId = request.header('x-bot-appid')
    if (appId !== undefined && appId !== this.#deps.appId)
      throw new Refusal('unauthorized', 'The request is for another bot')
  }

  /** Proves that the address is ours: QQ asks once, when it is entered. */
  #validate(data: unknown): WebhookAnswer {
    const parsed = v.safeParse(Validation, data)
    if (!parsed.success) throw new Refusal('invalid_request', 'The token to be signed has another form')
    const { plain_token, event_ts } = parsed.output
    return json({ plain_token, signature: this.#key.sign(event_ts + plain_token) })
  }
}

function frameOf(request: WebhookRequest): v.InferOutput<typeof GatewayFrame> {
  const frame = v.safeParse(GatewayFrame, readWebhookBody(request))
  if (frame.success) return frame.output
  throw new Refusal('invalid_request', 'The body is no event')
}

function json(body: unknown): WebhookAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
