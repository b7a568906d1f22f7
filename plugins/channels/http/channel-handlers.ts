import { messageOf } from 'svc/internal'
import { randomUUID } from 'node:crypto'
import type * as v from 'valibot'
import { commandLine, omitUndefined, reply } from 'svc/sdk'
import type { Account } from '../accounts/account.ts'
import type { AccountEntry } from '../accounts/service.ts'
import { classifyError, describeMissingModule } from '../connections/failure.ts'
import type { AccountState } from '../connections/status.ts'
import type { HandlerDeps } from './handlers.ts'
import { helpFor } from './help.ts'
import type { AccountQuery, ChannelParams, TestRequest } from './schema.ts'
import { allChannels, chooseAccount, requireChannel, toRows, toView } from './views.ts'

type Params = v.InferOutput<typeof ChannelParams>
interface TestInput {
  readonly params: Params
  readonly body: v.InferOutput<typeof TestRequest>
  readonly signal: AbortSignal
}

/** What the routes of a channel as a whole do. */
export function channelHandlers(deps: HandlerDeps) {
  const { accounts, registry, configuration, connections, log } = deps
  return {
    async listChannels() {
      const entries = await accounts.list()
      const channels = await toRows(deps, entries)
      return {
        channels,
        total: channels.length,
        configured_count: channels.filter(({ configured }) => configured).length,
      }
    },
    viewChannel: ({ params, query }: { readonly params: Params; readonly query: v.InferOutput<typeof AccountQuery> }) =>
      toView(deps, requireChannel(registry, params.name), query.account_id),
    async reloadChannels() {
      const { changed } = await configuration.reload()
      const started = await connections.restart()
      if (changed.length > 0) log.info(`the configuration was read again: ${changed.length} keys changed`)
      return { status: 'ok' as const, started: [...started] }
    },
    testChannel: (input: TestInput) => testChannel(deps, input),
  }
}

async function testChannel(deps: HandlerDeps, { params, body, signal }: TestInput) {
  const { registry, accounts, connections } = deps
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
  if (!entry)
    return {
      status: 'error' as const,
      message: `${name} is not configured: ${commandLine(`channels add ${name}`)} does it`,
    }
  if (entry.problem !== undefined)
    return { status: 'error' as const, message: entry.problem, ...helpWith(entry, 'misconfigured') }
  try {
    const message = await runTest(deps, await accounts.resolve(entry), body.chat_id ?? body.channel_id, signal)
    return { status: 'ok' as const, message }
  } catch (error) {
    const message = describeMissingModule(error) ?? messageOf(error)
    const { final, isDefect } = classifyError(error, connections.status(entry).state === 'needs_login')
    return { status: 'error' as const, message, ...helpWith(entry, final ?? (isDefect ? 'error' : 'backing_off')) }
  }
}
const helpWith = (entry: AccountEntry, state: AccountState) => omitUndefined({ help: helpFor(entry, state) })
function isAlias(name: string, { registry }: HandlerDeps): boolean {
  try {
    return requireChannel(registry, name).name !== name
  } catch {
    return false
  }
}

async function runTest(
  { registry, link, probeMs, send, connections }: HandlerDeps,
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
  // Two connections of one account at once may get in each other's way, as two programs in one folder do.
  await connections.accountAttempted(account.channel, account.id)
  const { withLink } = await import('../connections/probe.ts')
  const { account: name } = await withLink(link, account, adapter, { signal, timeoutMs: probeMs }, (one) =>
    adapter.probe(one),
  )
  return `The credentials are accepted: ${name}.`
}
