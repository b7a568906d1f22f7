import { createLimiter } from 'svc/internal'
import { defineRoute, rawBody, Refusal, reply } from 'svc/sdk'
import type { AnyRoute, Logger, PluginCredentials, RequestFacts } from 'svc/sdk'
import type { WebhookAnswer, WebhookRequest } from 'svc/channels'
import * as v from 'valibot'
import { accountKey } from '../accounts/account.ts'
import { DEFAULT_ACCOUNT } from '../accounts/settings.ts'
import type { Connections } from '../connections/connections.ts'
import { canonicalName } from '../names.ts'
import { AccountParams, ChannelParams } from './schema.ts'

export interface WebhookDeps {
  readonly connections: Pick<Connections, 'find'>
  readonly credentials: Pick<PluginCredentials, 'checkAttempts' | 'failed'>
  readonly maxBytes: number
  readonly perMinute: number
  readonly log: Logger
}
type Query = Readonly<Record<string, string | readonly string[]>>
type Facts = Pick<RequestFacts, 'clientAddress' | 'requestId' | 'header'>
interface Delivery extends Facts {
  readonly method: 'GET' | 'POST'
  readonly name: string
  readonly account: string
  readonly query: Query
  readonly body: Uint8Array
}

const MAX_KEYS = 10_000
const DESCRIPTION =
  'For the platform, which has no API key: the adapter checks the signature of the request. A wrong one counts as a ' +
  'wrong API key does. The answer is what the platform expects.'

/** Requests of the platforms. The answers to refused ones are fixed texts: they tell nothing of the configuration. */
export function webhookRoutes(deps: WebhookDeps): readonly AnyRoute[] {
  const limiter = createLimiter({
    tokens: deps.perMinute,
    windowMs: 60_000,
    maxKeys: MAX_KEYS,
    now: () => performance.now(),
  })
  const answer = async (delivery: Delivery) => {
    const { status, body = '', headers = {} } = await receive(deps, limiter, delivery)
    return reply(body, { 'content-type': 'text/plain; charset=utf-8', ...headers }, status)
  }
  return (['POST', 'GET'] as const).flatMap((method) => [
    webhookRoute(deps, method, answer),
    accountWebhookRoute(deps, method, answer),
  ])
}

type Answer = (delivery: Delivery) => Promise<ReturnType<typeof reply>>
const QueryTable = v.record(v.string(), v.union([v.string(), v.array(v.string())]))
const common = (maxBytes: number, method: 'GET' | 'POST') => ({
  method,
  description: DESCRIPTION,
  auth: 'signed' as const,
  effect: 'conversation' as const,
  cost: 1,
  query: QueryTable,
  ...(method === 'POST' && { body: rawBody(maxBytes) }),
  returns: v.string(),
  produces: '*/*',
  answers: { 202: { description: 'Accepted' }, 204: { description: 'Accepted' } },
  errors: ['not_found', 'rate_limit', 'service_unavailable', 'unauthorized'] as const,
})

function webhookRoute({ maxBytes }: WebhookDeps, method: 'GET' | 'POST', answer: Answer): AnyRoute {
  return defineRoute({
    ...common(maxBytes, method),
    path: '/api/channels/:name/webhook',
    summary: method === 'POST' ? 'Take messages of a chat platform' : 'Answer the question of a platform who is here',
    params: ChannelParams,
    handle(input) {
      const { params, query, body } = input
      return answer({ ...pick(input), method, name: params.name, account: DEFAULT_ACCOUNT, query, body: toBytes(body) })
    },
  })
}
function accountWebhookRoute({ maxBytes }: WebhookDeps, method: 'GET' | 'POST', answer: Answer): AnyRoute {
  return defineRoute({
    ...common(maxBytes, method),
    path: '/api/channels/:name/webhook/:account',
    summary: `${method === 'POST' ? 'Take messages' : 'Answer the question'} for one of several accounts`,
    params: AccountParams,
    handle(input) {
      const { params, query, body } = input
      return answer({ ...pick(input), method, name: params.name, account: params.account, query, body: toBytes(body) })
    },
  })
}
const pick = (input: Facts): Facts => ({
  clientAddress: input.clientAddress,
  requestId: input.requestId,
  header: (name) => input.header(name),
})
const toBytes = (body: unknown): Uint8Array => (body instanceof Uint8Array ? body : new Uint8Array())

async function receive(
  { connections, credentials, log }: WebhookDeps,
  limiter: ReturnType<typeof createLimiter>,
  delivery: Delivery,
): Promise<WebhookAnswer> {
  const { clientAddress } = delivery
  const channel = canonicalName(delivery.name)
  const key = accountKey(channel, delivery.account)
  credentials.checkAttempts(clientAddress)
  const connection = connections.find(channel, delivery.account)?.connection
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

function toRequest({ method, query, header, body }: Delivery): WebhookRequest {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? (value as readonly string[]) : [String(value)]).map((one): [string, string] => [name, one]),
  )
  return { method, query: new URLSearchParams(pairs), header, body }
}
