import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { pause, readWebhookBody, runInBackground, verifySignature } from 'svc/channels'
import type { Background, ChannelLink, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { ViberApi } from './api.ts'
import type { ViberConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import { withExactTokens } from './exact-tokens.ts'
import { AnyEvent, FailedEvent, MessageEvent } from './wire.ts'

type Link = ChannelLink<ViberConfig>
/** More often than `silenceMs` of the adapter. */
const CHECK_MS = 300_000
/** Viber sends an event again for an hour. */
const MAX_AGE_MS = 86_400_000

/**
 * Sets the webhook, and checks now and then that it is still the one that Viber calls. In the background, as Viber
 * calls it at once: by then the connection has to be open.
 */
export function startWebhook(link: Link, api: ViberApi): Background {
  const { webhook_url: url } = link.config
  return runInBackground(link, async (signal) => {
    await api.setWebhook(url)
    link.heard()
    while (await pause(link, CHECK_MS, signal)) {
      const { webhook } = await api.account()
      if (webhook !== url)
        throw new UpstreamFailure('viber', 'viber: another program took the events of this bot', {
          reason: 'overloaded',
          retry: 'later',
        })
      link.heard()
    }
  })
}

export async function answerWebhook(link: Link, request: WebhookRequest): Promise<WebhookAnswer> {
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  verifySignature(request.body, request.header('x-viber-content-signature'), { secret: link.config.token })
  await receiveEvent(link, readWebhookBody({ body: withExactTokens(request.body) }))
  return { status: 200 }
}

async function receiveEvent(link: Link, raw: unknown): Promise<void> {
  const any = v.safeParse(AnyEvent, raw)
  if (!any.success) return link.log.warn('Viber sent an event in a form that cannot be read')
  const { event, timestamp } = any.output
  if (event === 'failed') return reportFailure(link, raw)
  if (event !== 'message') return
  const parsed = v.safeParse(MessageEvent, raw)
  if (!parsed.success) return link.log.warn('Viber sent a message in a form that cannot be read')
  if (parsed.output.chat_id) return link.log.warn('Viber sent a message of a group: bots are for direct chats')
  if (link.now() - timestamp > MAX_AGE_MS)
    return link.log.warn('Viber sent a message of more than a day ago: it was left out')
  const message = decodeMessage(parsed.output)
  if (message) await link.receive(message)
}

/** Clients refuse some messages that the server took. */
function reportFailure({ log }: Link, raw: unknown): void {
  const failed = v.safeParse(FailedEvent, raw)
  log.warn('viber: a message was not shown', { reason: failed.success ? failed.output.desc : undefined })
}
