import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { listChannels } from './client.ts'

export default defineCommand({
  description: 'List the channels: those that are configured, or all that there are.',
  args: { ...clientArgs, all: { type: 'boolean', description: 'Those that are not configured too' } },
  examples: [
    ['svc channels list', 'what is configured, and its state'],
    ['svc channels list --all', 'every channel, with and without an adapter'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), listChannels)
    const rows = answer.channels.filter(({ configured }) => configured || args.all)
    if (args.json) printJson(answer)
    else if (rows.length === 0)
      print(
        `No channel is configured. ${commandLine('channels list --all')} shows what there is, ` +
          `${commandLine('channels add telegram')} adds one.`,
      )
    else
      print(
        renderTable(
          ['NAME', 'TITLE', 'CATEGORY', 'STATE'],
          rows.map(({ name, display_name: title, category, available, state }) => [
            name,
            title,
            category,
            available ? state.replaceAll('_', ' ') : 'no adapter',
          ]),
        ),
      )
    return exits.ok
  },
})
