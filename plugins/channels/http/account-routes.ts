import { commandLine, defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { RouteDeps } from './routes.ts'
import { AccountQuery, ChannelParams, Configuration, Configured, Removed, Switched } from './schema.ts'

const errors = ['channel_not_found', 'not_found', 'conflict', 'forbidden'] as const

export function accountRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [configureRoute(deps), removeRoute(deps), switchRoute(deps, true), switchRoute(deps, false)]
}

function configureRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/channels/:name/configure',
    summary: 'Configure an account of a channel',
    description:
      'Secrets go into the vault and are never shown again. Fields that are left out stay as they are. A text field of ' +
      'the platform may decide where secrets are sent: changing one needs the secrets again. An account in config.toml ' +
      'is changed there.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: ChannelParams,
    body: Configuration,
    returns: Configured,
    errors: [...errors],
    example: {
      body: { token: '123456:ABC…', agent_name: 'assistant', fields: { allowed_users: ['@ada'] } },
      returns: {
        status: 'configured',
        channel: 'telegram',
        account_id: 'default',
        activated: true,
        started_channels: ['telegram'],
        note: `It connects now; ${commandLine('channels status telegram')} shows its state.`,
      },
    },
    handle: async (input) => (await host()).handlers.configureAccount(input),
  })
}

function removeRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/channels/:name/configure',
    summary: 'Remove an account of a channel with its secrets',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: ChannelParams,
    query: AccountQuery,
    returns: Removed,
    errors: [...errors],
    handle: async (input) => (await host()).handlers.removeAccount(input),
  })
}

function switchRoute({ host }: RouteDeps, enabled: boolean): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: `/api/channels/:name/${enabled ? 'enable' : 'disable'}`,
    summary: enabled ? 'Connect an account of a channel' : 'Disconnect an account of a channel',
    description: enabled
      ? 'One that could not connect as it was configured tries again.'
      : 'What waits to be sent is kept until it is enabled again.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: ChannelParams,
    query: AccountQuery,
    returns: Switched,
    errors: [...errors],
    handle: async (input) => (await host()).handlers.switchAccount(input, enabled),
  })
}
