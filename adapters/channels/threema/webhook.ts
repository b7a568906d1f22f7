import * as v from 'valibot'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { verifySignature, verifyTimestamp } from 'svc/channels'
import type { ChannelLink, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { ThreemaApi } from './api.ts'
import type { BoxKey } from './box.ts'
import type { ThreemaConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import { Callback } from './wire.ts'

/** A box has 4,000 bytes. */
const MAX_BODY_BYTES = 16_384
/** The fields that `mac` signs, in this order. */
const SIGNED = ['from', 'to', 'messageId', 'date', 'nonce', 'box']
/** The time is that of the phone, which may have been offline; what is younger is known when it comes again. */
const WINDOW_MS = 3 * 86_400_000

export interface WebhookDeps {
  readonly link: ChannelLink<ThreemaConfig>
  readonly api: ThreemaApi
  readonly key: BoxKey
}

/** Threema calls again, a few times in some minutes, unless it is answered with 200. */
export async function answerWebhook(request: WebhookRequest, deps: WebhookDeps): Promise<WebhookAnswer> {
  const { link } = deps
  if (request.body.length > MAX_BODY_BYTES) throw new Refusal('invalid_request', 'The body is too large')
  const fields = Object.fromEntries(new URLSearchParams(new TextDecoder().decode(request.body)))
  const signed = SIGNED.map((name) => fields[name] ?? '').join('')
  verifySignature(signed, fields['mac'], { secret: link.config.token })
  const callback = v.safeParse(Callback, fields)
  if (!callback.success) throw new Refusal('invalid_request', 'The fields are not those of a message')
  verifyTimestamp(Number(callback.output.date) * 1000, link.now(), WINDOW_MS)
  // Another id may have the same secret.
  if (callback.output.to === link.config.threema_id) await receive(callback.output, deps)
  return { status: 200 }
}

async function receive(callback: Callback, { link, api, key }: WebhookDeps): Promise<void> {
  const writer = await keyOf(callback.from, api)
  const nonce = bytesOf(callback.nonce)
  const content = writer && key.open({ nonce, box: bytesOf(callback.box) }, writer)
  // It would be the same the next time.
  if (!content) return link.log.warn('A message of Threema cannot be opened', { from: callback.from })
  const message = decodeMessage(callback, content)
  if (message) await link.receive(message)
}

/** `undefined` for an id that was revoked. */
async function keyOf(id: string, api: ThreemaApi): Promise<Uint8Array | undefined> {
  try {
    return await api.publicKey(id)
  } catch (error) {
    if (error instanceof UpstreamFailure && error.reason === 'not_found') return undefined
    throw error
  }
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'))
}
