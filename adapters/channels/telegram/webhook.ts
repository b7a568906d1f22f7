import { Refusal, readJson, UpstreamFailure } from 'svc/sdk'
import { pause, runInBackground, verifySecret } from 'svc/channels'
import type { Background, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { BotApi, Link } from './api.ts'
import { receiveUpdate } from './poll.ts'
import type { Receiver } from './poll.ts'
import { Done, UPDATE_KINDS, WebhookInfo } from './wire.ts'

/** More often than `silenceMs` of the adapter. */
const CHECK_MS = 45_000

/** Sets the webhook, and checks now and then that it is still the one that Telegram calls. */
export async function startWebhook(link: Link, api: BotApi, url: string): Promise<Background> {
  const { webhook_secret: secret } = link.config
  await api.call('setWebhook', { json: { url, secret_token: secret, allowed_updates: UPDATE_KINDS } }, Done)
  return runInBackground(link, async (signal) => {
    while (!signal.aborted) {
      link.heard()
      if (!(await pause(link, CHECK_MS, signal))) return
      const { result } = await api.call('getWebhookInfo', { signal }, WebhookInfo)
      if (result.url !== url)
        throw new UpstreamFailure('telegram', 'telegram: another program took the updates of this bot', {
          reason: 'overloaded',
          retry: 'later',
        })
    }
  })
}

export async function receiveRequest(receiver: Receiver, request: WebhookRequest): Promise<WebhookAnswer> {
  const { webhook_secret: secret, webhook_url } = receiver.link.config
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  verifySecret(request.header('x-telegram-bot-api-secret-token'), webhook_url === undefined ? '' : (secret ?? ''))
  await receiveUpdate(receiver, readUpdate(request.body))
  return { status: 200 }
}

function readUpdate(body: Uint8Array): unknown {
  try {
    return readJson(new TextDecoder().decode(body))
  } catch {
    throw new Refusal('invalid_request', 'The body is not JSON')
  }
}
