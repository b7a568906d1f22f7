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
  const receive = async (method: 'GET' | 'POST', account: string, input: Input): Promise<Reply> =>
    (await host()).handlers.receiveWebhook({
      method,
      name: input.params.name,
      account,
      query: input.query,
      body: toBytes(input.body),
      clientAddress: input.clientAddress,
      requestId: input.requestId,
      header: (name) => input.header(name),
      headers: () => input.headers(),
    })
  return (['POST', 'GET'] as const).flatMap((method) => [
    defineRoute({
      ...common(webhookMaxBytes, method),
      path: '/api/channels/:name/webhook',
      summary: method === 'POST' ? 'Take messages of a chat platform' : 'Answer the question of a platform who is here',
      params: ChannelParams,
      handle: (input) => receive(method, DEFAULT_ACCOUNT, input),
    }),
    defineRoute({
      ...common(webhookMaxBytes, method),
      path: '/api/channels/:name/webhook/:account',
      summary: `${method === 'POST' ? 'Take messages' : 'Answer the question'} for one of several accounts`,
      params: AccountParams,
      handle: (input) => receive(method, input.params.account, input),
    }),
  ])
}

interface Input extends Facts {
  readonly params: { readonly name: string }
  readonly query: Query
  readonly body: unknown
}
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
const toBytes = (body: unknown): Uint8Array => (body instanceof Uint8Array ? body : new Uint8Array())
