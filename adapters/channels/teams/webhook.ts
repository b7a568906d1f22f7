import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { bearerToken, readWebhookBody, verifyToken } from 'svc/channels'
import type { ChannelLink, InboundMessage, PublishedKeys, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { TeamsConfig } from './config.ts'
import { isSameService } from './service-url.ts'
import { CHANNEL_ID } from './signing-keys.ts'
import { Activity } from './wire.ts'

const ISSUER = 'https://api.botframework.com'

export interface WebhookDeps {
  readonly link: ChannelLink<TeamsConfig>
  readonly keys: PublishedKeys
  decode(activity: Activity): InboundMessage | undefined
}

/** Takes an activity. Teams sends it again unless it is answered with success within 15 seconds. */
export async function answerWebhook(deps: WebhookDeps, request: WebhookRequest): Promise<WebhookAnswer> {
  const { link, keys, decode } = deps
  if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  const claims = await verifyToken(bearerToken(request), (id) => keys.find(id), {
    algorithm: 'RS256',
    issuer: ISSUER,
    audience: link.config.app_id,
    now: link.now(),
  })
  const parsed = v.safeParse(Activity, readWebhookBody(request))
  if (!parsed.success) {
    link.log.warn('Teams sent an activity in a form that cannot be read')
    return { status: 200 }
  }
  const activity = parsed.output
  // A token of one service says nothing about a message that names another one.
  if (!isSameService(claims['serviceurl'], activity.serviceUrl) || activity.channelId !== CHANNEL_ID)
    throw new Refusal('unauthorized', 'The token is not for this activity')
  // Nothing that was sent asks for an answer: it would say that it is not understood.
  if (activity.type === 'invoke') return { status: 501 }
  if (isOfTenant(activity, link.config)) {
    const message = decode(activity)
    if (message) await link.receive(message)
  }
  return { status: 200 }
}

function isOfTenant({ channelData, conversation }: Activity, config: TeamsConfig): boolean {
  const { allowed_tenants: allowed, tenant_id: own } = config
  const tenants = allowed.length === 0 && own !== undefined ? [own] : allowed
  const tenant = channelData?.tenant?.id ?? conversation?.tenantId ?? ''
  return tenants.length === 0 || tenants.some((one) => one.toLowerCase() === tenant.toLowerCase())
}
