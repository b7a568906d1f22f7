import {
  callDaemon,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  print,
  printJson,
  renderFacts,
} from 'svc/cli'
import { channelArgs, listChannels, readChannel } from './client.ts'
import type { View } from './client.ts'

export default defineCommand({
  description:
    'Show the state of the accounts of a channel, or of all that are configured. The exit code is 1 when an enabled one ' +
    'is not connected.',
  args: { ...channelArgs, channel: { ...channelArgs.channel, required: false } },
  examples: [
    ['svc channels status', 'every account that is configured'],
    ['svc channels status telegram', 'state, counters, last error, warnings'],
  ],
  async run(args) {
    const { channel, account } = args
    if (channel === undefined) {
      if (account !== undefined) throw new Failure(exits.usage, '--account needs the name of a channel')
      return showAll(await readConfigured(await connect(args)), args.json)
    }
    const view = await callDaemon(await connect(args), (client) => readChannel(client, channel))
    const accounts = view.account_list.filter(({ account_id: id }) => args.account === undefined || id === args.account)
    if (args.account !== undefined && accounts.length === 0)
      throw new Failure(
        exits.notFound,
        `${view.name} has no account "${args.account}"`,
        'leave out --account to see all',
      )
    if (args.json) printJson(view)
    else if (accounts.length === 0)
      print(`${view.display_name} is not configured: ${commandLine(`channels add ${view.name}`)} does it.`)
    else print(accounts.map((one) => describe(view, one)).join('\n\n'))
    return accounts.every(isWell) ? exits.ok : exits.failed
  },
})

const isWell = ({ enabled, status }: View['account_list'][number]): boolean => !enabled || status.state === 'connected'

/** The channels with an account. */
function readConfigured(connection: Awaited<ReturnType<typeof connect>>): Promise<readonly View[]> {
  return callDaemon(connection, async (client) => {
    const { channels } = await listChannels(client)
    const names = channels.filter(({ configured }) => configured).map(({ name }) => name)
    return Promise.all(names.map((name) => readChannel(client, name)))
  })
}

function showAll(views: readonly View[], isJson: boolean | undefined): number {
  if (isJson) printJson({ channels: views })
  else if (views.length === 0) print(`No channel is configured: ${commandLine('channels add telegram')} adds one.`)
  else print(views.flatMap((view) => view.account_list.map((one) => describe(view, one))).join('\n\n'))
  return views.every(({ account_list: accounts }) => accounts.every(isWell)) ? exits.ok : exits.failed
}

function describe(view: View, { account_id: id, source, status }: View['account_list'][number]): string {
  const facts: [string, string][] = [
    ['channel', `${view.name}${id === 'default' ? '' : ` (${id})`}`],
    ['state', status.state.replaceAll('_', ' ')],
    ['configured in', source === 'file' ? 'config.toml' : 'the API'],
    ['messages', `${status.messages_received} received, ${status.messages_sent} sent, ${status.failed} failed`],
    ['outbox', `${status.outbox} waiting, ${status.dead_letters} dead letters`],
  ]
  if (status.started_at !== null) facts.push(['connected since', status.started_at])
  if (status.next_retry_at !== null) facts.push(['next attempt', status.next_retry_at])
  if (status.last_error !== null) facts.push(['last error', escapeControls(status.last_error)])
  if (status.help !== null) facts.push(['what to do', escapeControls(status.help)])
  for (const warning of status.warnings) facts.push(['warning', escapeControls(warning)])
  return renderFacts(facts)
}
