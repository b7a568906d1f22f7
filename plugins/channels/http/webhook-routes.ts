import { defineRoute, rawBody } from 'svc/sdk'
import type { AnyRoute, Reply, RequestFacts } from 'svc/sdk'
import * as v from 'valibot'
import { DEFAULT_ACCOUNT } from '../accounts/account-id.ts'
import type { RouteDeps } from './routes.ts'
import { AccountParams, ChannelParams } from './schema.ts'

type Query = Readonly<Record<string, string | readonly string[]>>
type Facts = Pick<RequestFacts, 'clientAddress' | 'requestId' | 'header' | 'headers'>
export interface Delivery extends Facts {
  readonly method: 'GET' | 'POST'
  readonly name: string
  readonly account: string
  readonly query: Query
  readonly body: Uint8Array
}

const DESCRIPTION =
  'For the platform, which has no API key: the adapter checks the signature of the request. A wrong one counts as a ' +
  'wrong API key does. The answer is what the platform expects.'

/** Requests of the platforms. */
export function webhookRoutes({ host, webhookMaxBytes }: RouteDeps): readonly AnyRoute[] {
  const answer: Answer = async (delivery) => (await host()).handlers.receiveWebhook(delivery)
  return (['POST', 'GET'] as const).flatMap((method) => [
    webhookRoute(webhookMaxBytes, method, answer),
    accountWebhookRoute(webhookMaxBytes, method, answer),
  ])
}

type Answer = (delivery: Delivery) => Promise<Reply>
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

function webhookRoute(maxBytes: number, method: 'GET' | 'POST', answer: Answer): AnyRoute {
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
function accountWebhookRoute(maxBytes: number, method: 'GET' | 'POST', answer: Answer): AnyRoute {
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
  headers: () => input.headers(),
})
const toBytes = (body: unknown): Uint8Array => (body instanceof Uint8Array ? body : new Uint8Array())
