import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { ChannelHost } from '../host.ts'
import { pairingRoutes } from '../policies/pairing-routes.ts'
import { bindingRoutes } from '../routing/binding-routes.ts'
import { accountRoutes } from './account-routes.ts'
import { messageRoutes } from './message-routes.ts'
import { qrRoutes } from './qr-routes.ts'
import { AccountQuery, ChannelList, ChannelParams, ChannelView, Reloaded, TestRequest, TestResult } from './schema.ts'
import { webhookRoutes } from './webhook-routes.ts'

export interface RouteDeps {
  /** Loads the host, whose handlers do what a route declares. */
  readonly host: () => Promise<Pick<ChannelHost, 'handlers'>>
  readonly webhookMaxBytes: number
}

/** Every route is declared at once and costs little; the code that answers is loaded with the first request. */
export function channelRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [
    listRoute(deps),
    reloadRoute(deps),
    viewRoute(deps),
    testRoute(deps),
    ...accountRoutes(deps),
    ...webhookRoutes(deps),
    ...qrRoutes(deps),
    ...bindingRoutes(deps),
    ...pairingRoutes(deps),
    ...messageRoutes(deps),
  ]
}

function listRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/channels',
    summary: 'List the chat channels',
    description:
      'All that svc knows by name, and those of plugins. `available` says whether there is an adapter; `state` is that ' +
      'of the account that needs attention most.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: ChannelList,
    handle: async () => (await host()).handlers.listChannels(),
  })
}

function viewRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/channels/:name',
    summary: 'Configuration and status of a channel',
    description: 'Secrets are `***`. `fields` is what the channel can be configured with.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: ChannelParams,
    query: AccountQuery,
    returns: ChannelView,
    errors: ['channel_not_found', 'not_found'],
    handle: async (input) => (await host()).handlers.viewChannel(input),
  })
}

function reloadRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/channels/reload',
    summary: 'Read the configuration again and connect every channel anew',
    description: 'What waits to be sent or answered is kept. `started` has the channels that connect now.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    returns: Reloaded,
    errors: ['service_unavailable'],
    handle: async () => (await host()).handlers.reloadChannels(),
  })
}

function testRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/channels/:name/test',
    summary: 'Check the credentials of a channel, or send a test message',
    description:
      'With `chat_id` a message goes into the outbox for that chat; without it nothing is sent. The status is 200 in ' +
      'both cases; `status` says how it went.',
    auth: 'bearer',
    effect: 'lasting',
    idempotent: false,
    cost: 10,
    params: ChannelParams,
    body: TestRequest,
    returns: TestResult,
    answers: { 404: { description: 'No such channel', json: TestResult } },
    handle: async (input) => (await host()).handlers.testChannel(input),
  })
}
