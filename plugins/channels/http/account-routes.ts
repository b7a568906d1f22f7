import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { DEFAULT_ACCOUNT } from '../accounts/settings.ts'
import type { RouteDeps } from './routes.ts'
import { AccountQuery, ChannelParams, Configuration, Configured, Removed, Switched } from './schema.ts'
import { chooseAccount, requireChannel } from './views.ts'

const errors = ['channel_not_found', 'not_found', 'conflict', 'forbidden'] as const

export function accountRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [configureRoute(deps), removeRoute(deps), switchRoute(deps, true), switchRoute(deps, false)]
}

function configureRoute({ accounts, connections, registry, background }: RouteDeps): AnyRoute {
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
        note: 'It connects now; GET /api/channels/telegram has its state.',
      },
    },
    async handle({ params, body }) {
      const { name } = requireChannel(registry, params.name)
      if (!registry.find(name)) throw new Refusal('conflict', `There is no adapter for ${name} yet`)
      const { account_id: given, enabled, fields: nested = {}, ...flat } = body
      const fields = { ...flat, ...nested }
      if (Object.keys(fields).length === 0)
        throw new Refusal(
          'invalid_request',
          `fields: send the fields of ${name}, as GET /api/channels/${name} lists them`,
        )
      const id = given ?? DEFAULT_ACCOUNT
      await accounts.configure({ channel: name, id, enabled, fields })
      const activated = (await accounts.find(name, id))?.enabled ?? false
      background(() => connections.restartAccount(name, id))
      return {
        status: 'configured' as const,
        channel: name,
        account_id: id,
        activated,
        started_channels: activated ? [name] : [],
        note: activated
          ? `It connects now; GET /api/channels/${name} has its state.`
          : `It is disabled; PUT /api/channels/${name}/enable connects it.`,
      }
    },
  })
}

function removeRoute({ accounts, connections, registry }: RouteDeps): AnyRoute {
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
    async handle({ params, query }) {
      const { name } = requireChannel(registry, params.name)
      const id = chooseAccount(await accounts.list(), name, query.account_id)
      await accounts.remove(name, id)
      await connections.sync()
      const remaining = new Set((await accounts.list()).map(({ channel }) => channel)).size
      return {
        status: 'removed' as const,
        channel: name,
        account_id: id,
        remaining_channels: remaining,
        note: 'Its connection has ended, and its secrets are gone.',
      }
    },
  })
}

function switchRoute({ accounts, connections, registry, background }: RouteDeps, enabled: boolean): AnyRoute {
  const status = enabled ? ('enabled' as const) : ('disabled' as const)
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
    async handle({ params, query }) {
      const { name } = requireChannel(registry, params.name)
      const id = chooseAccount(await accounts.list(), name, query.account_id)
      if (enabled && !registry.find(name)) throw new Refusal('conflict', `There is no adapter for ${name} yet`)
      await accounts.setEnabled(name, id, enabled)
      if (enabled) background(() => connections.restartAccount(name, id))
      else await connections.sync()
      return { status, channel: name }
    },
  })
}
