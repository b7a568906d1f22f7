import type * as v from 'valibot'
import { commandLine, Refusal } from 'svc/sdk'
import { DEFAULT_ACCOUNT } from '../accounts/account-id.ts'
import type { HandlerDeps } from './handlers.ts'
import type { AccountQuery, ChannelParams, Configuration } from './schema.ts'
import { requireAgent } from '../routing/binding-handlers.ts'
import { storedName } from './message-handlers.ts'
import { chooseAccount, requireChannel } from './views.ts'

type Params = v.InferOutput<typeof ChannelParams>
interface AccountInput {
  readonly params: Params
  readonly query: v.InferOutput<typeof AccountQuery>
}
interface ConfigureInput {
  readonly params: Params
  readonly body: v.InferOutput<typeof Configuration>
}

/** What the routes do that configure, remove and switch an account. */
export function accountHandlers(deps: HandlerDeps) {
  const { accounts, agents, connections, registry, background } = deps
  return {
    async configureAccount({ params, body }: ConfigureInput) {
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
      if (typeof fields['agent_name'] === 'string') await requireAgent(agents, fields['agent_name'], 'agent_name')
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
          ? `It connects now; ${commandLine(`channels status ${name}`)} shows its state.`
          : `It is disabled; ${commandLine(`channels enable ${name}`)} connects it.`,
      }
    },
    async removeAccount({ params, query }: AccountInput) {
      const name = await storedName(deps, params.name)
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
    async switchAccount({ params, query }: AccountInput, enabled: boolean) {
      const { name } = requireChannel(registry, params.name)
      const id = chooseAccount(await accounts.list(), name, query.account_id)
      if (enabled && !registry.find(name)) throw new Refusal('conflict', `There is no adapter for ${name} yet`)
      await accounts.setEnabled(name, id, enabled)
      if (enabled) background(() => connections.restartAccount(name, id))
      else await connections.sync()
      return { status: enabled ? ('enabled' as const) : ('disabled' as const), channel: name }
    },
  }
}
