import { createLimiter } from 'svc/internal'
import { Refusal, reply } from 'svc/sdk'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'
import { accountKey } from '../accounts/account.ts'
import { canonicalName } from '../names.ts'
import type { HandlerDeps } from './handlers.ts'
import type { Delivery } from './webhook-routes.ts'

type WebhookDeps = Pick<HandlerDeps, 'accounts' | 'connections' | 'credentials' | 'log' | 'webhooksPerMinute'>
const MAX_KEYS = 10_000

/** The answers to refused requests are fixed texts: they tell nothing of the configuration. */
export function webhookHandler(deps: WebhookDeps) {
  const limiter = createLimiter({
    tokens: deps.webhooksPerMinute,
    windowMs: 60_000,
    maxKeys: MAX_KEYS,
    now: () => performance.now(),
  })
  return async (delivery: Delivery) => {
    const { status, body = '', headers = {} } = await receive(deps, limiter, delivery)
    return reply(body, { 'content-type': 'text/plain; charset=utf-8', ...headers }, status)
  }
}

async function receive(
  { accounts, connections, credentials, log }: WebhookDeps,
  limiter: ReturnType<typeof createLimiter>,
  delivery: Delivery,
): Promise<WebhookAnswer> {
  const { clientAddress } = delivery
  const channel = canonicalName(delivery.name)
  const key = accountKey(channel, delivery.account)
  credentials.checkAttempts(clientAddress)
  const open = connections.find(channel, delivery.account)
  const connection = open?.connection
  // A platform gives up a request that is answered with 404.
  if (!connection && (await isEnabled(accounts, channel, delivery.account)))
    throw new Refusal('service_unavailable', 'The channel is not connected; send it again', { retryAfterSecs: 5 })
  if (!connection?.webhook) throw new Refusal('not_found', 'Nothing is received here')
  if (!limiter.take(key, 1)) throw new Refusal('rate_limit', 'Too many requests', { retryAfterSecs: 60 })
  try {
    return await connection.webhook(toRequest(delivery))
  } catch (error) {
    if (!(error instanceof Refusal)) {
      log.error(`channel ${key}: a request of the platform failed`, error)
      throw new Refusal('service_unavailable', 'The request could not be handled; send it again', { retryAfterSecs: 5 })
    }
    if (error.code !== 'unauthorized') throw error
    open?.unsigned()
    credentials.failed({
      clientAddress,
      requestId: delivery.requestId,
      method: delivery.method,
      path: `/api/channels/${channel}/webhook`,
      what: 'a wrong signature of a chat platform',
    })
    throw new Refusal('unauthorized', 'The request is not signed as it has to be')
  }
}

/** Whether the account is to be connected, so that it is worth asking again while it is not. */
async function isEnabled(accounts: WebhookDeps['accounts'], channel: string, id: string): Promise<boolean> {
  return (await accounts.list()).some((entry) => entry.channel === channel && entry.id === id && entry.enabled)
}

function toRequest({ method, query, header, headers, body }: Delivery): WebhookRequest {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? (value as readonly string[]) : [String(value)]).map((one): [string, string] => [name, one]),
  )
  return { method, query: new URLSearchParams(pairs), header, headers, body }
}
