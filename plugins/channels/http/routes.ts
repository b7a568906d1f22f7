import { randomUUID } from 'node:crypto'
import type { Configuration as DaemonConfiguration } from 'svc/internal'
import { defineRoute, reply } from 'svc/sdk'
import type { AnyRoute, Logger } from 'svc/sdk'
import type { Account } from '../accounts/account.ts'
import type { LinkDeps } from '../connections/link.ts'
import type { SignIns } from '../connections/sign-ins.ts'
import { qrRoutes } from './qr-routes.ts'
import { accountRoutes } from './account-routes.ts'
import { ChannelList, ChannelParams, ChannelView, AccountQuery, Reloaded, TestRequest, TestResult } from './schema.ts'
import { allChannels, chooseAccount, requireChannel, toRow, toView } from './views.ts'
import type { ViewDeps } from './views.ts'
import { webhookRoutes } from './webhook-routes.ts'
import type { WebhookDeps } from './webhook-routes.ts'

export interface RouteDeps extends ViewDeps {
  readonly configuration: DaemonConfiguration
  readonly link: LinkDeps
  readonly webhook: WebhookDeps
  readonly signIns: SignIns
  readonly probeMs: number
  /** Puts a message into the outbox. */
  readonly send: (account: Account, chatId: string, text: string, id: string) => Promise<void>
  /** Runs work that unloading waits for and the caller does not. */
  readonly background: (work: () => Promise<unknown>) => void
  readonly log: Logger
}

export function channelRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [
    listRoute(deps),
    reloadRoute(deps),
    viewRoute(deps),
    testRoute(deps),
    ...accountRoutes(deps),
    ...webhookRoutes(deps.webhook),
    ...qrRoutes(deps),
  ]
}

function listRoute(deps: RouteDeps): AnyRoute {
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
    async handle() {
      const entries = await deps.accounts.list()
      const channels = allChannels(deps.registry).map((channel) => toRow(deps, channel, entries))
      return {
        channels,
        total: channels.length,
        configured_count: channels.filter(({ configured }) => configured).length,
      }
    },
  })
}

function viewRoute(deps: RouteDeps): AnyRoute {
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
    handle: ({ params, query }) => toView(deps, requireChannel(deps.registry, params.name), query.account_id),
  })
}

function reloadRoute({ configuration, connections, log }: RouteDeps): AnyRoute {
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
    async handle() {
      const { changed } = await configuration.reload()
      const started = await connections.restart()
      if (changed.length > 0) log.info(`the configuration was read again: ${changed.length} keys changed`)
      return { status: 'ok' as const, started: [...started] }
    },
  })
}

function testRoute(deps: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/channels/:name/test',
    summary: 'Check the credentials of a channel, or send a test message',
    description:
      'With `chat_id` a message goes into the outbox for that chat; without it nothing is sent. The status is 200 in ' +
      'both cases; `status` says how it went.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: ChannelParams,
    body: TestRequest,
    returns: TestResult,
    answers: { 404: { description: 'No such channel', json: TestResult } },
    async handle({ params, body, signal }) {
      const { registry, accounts } = deps
      const found = allChannels(registry).some(({ name }) => name === params.name)
      if (!found && !isAlias(params.name, deps)) {
        const error = `There is no channel "${params.name}"`
        const body = JSON.stringify({ status: 'error', message: error, error })
        return reply(body, { 'content-type': 'application/json' }, 404)
      }
      const { name } = requireChannel(registry, params.name)
      const entries = await accounts.list()
      const id = chooseAccount(entries, name, body.account_id)
      const entry = entries.find((one) => one.channel === name && one.id === id)
      if (!entry) return { status: 'error' as const, message: `${name} is not configured` }
      if (entry.problem !== undefined) return { status: 'error' as const, message: entry.problem }
      try {
        const message = await runTest(deps, await accounts.resolve(entry), body.chat_id ?? body.channel_id, signal)
        return { status: 'ok' as const, message }
      } catch (error) {
        return { status: 'error' as const, message: error instanceof Error ? error.message : String(error) }
      }
    },
  })
}
function isAlias(name: string, { registry }: RouteDeps): boolean {
  try {
    return requireChannel(registry, name).name !== name
  } catch {
    return false
  }
}

async function runTest(
  { registry, link, probeMs, send, connections }: RouteDeps,
  account: Account,
  chatId: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const adapter = await registry.load(account.channel)
  if (chatId !== undefined) {
    await send(account, chatId, 'This is a test message of svc.', randomUUID())
    const isOpen = connections.find(account.channel, account.id) !== undefined
    return isOpen ? `The message is on its way to ${chatId}.` : 'The message waits: the account is not connected.'
  }
  const { withLink } = await import('../connections/probe.ts')
  const { account: name } = await withLink(link, account, adapter, { signal, timeoutMs: probeMs }, (one) =>
    adapter.probe(one),
  )
  return `The credentials are accepted: ${name}.`
}
