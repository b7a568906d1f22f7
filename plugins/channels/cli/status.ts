import {
  callDaemon,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  print,
  printJson,
  renderFacts,
} from 'svc/cli'
import { channelArgs, readChannel } from './client.ts'
import type { View } from './client.ts'

export default defineCommand({
  description: 'Show the state of the accounts of a channel. The exit code is 1 when an enabled one is not connected.',
  args: channelArgs,
  examples: [['svc channels status telegram', 'state, counters, last error, warnings']],
  async run(args) {
    const view = await callDaemon(await connect(args), (client) => readChannel(client, args.channel))
    const accounts = view.account_list.filter(({ account_id: id }) => args.account === undefined || id === args.account)
    if (args.account !== undefined && accounts.length === 0)
      throw new Failure(
        exits.notFound,
        `${view.name} has no account "${args.account}"`,
        'leave out --account to see all',
      )
    if (args.json) printJson(view)
    else if (accounts.length === 0) print(`${view.display_name} is not configured.`)
    else print(accounts.map((account) => describe(view, account)).join('\n\n'))
    const isWell = accounts.every(({ enabled, status }) => !enabled || status.state === 'connected')
    return isWell ? exits.ok : exits.failed
  },
})

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
  for (const warning of status.warnings) facts.push(['warning', escapeControls(warning)])
  return renderFacts(facts)
}
