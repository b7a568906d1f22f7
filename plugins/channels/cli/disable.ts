import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { channelArgs, channelPath } from './client.ts'

export default defineCommand({
  description: 'Disconnect an account of a channel. What waits to be sent is kept.',
  args: channelArgs,
  examples: [['svc channels disable telegram', 'the account of Telegram']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('PUT', channelPath(args.channel, 'disable', args.account), v.looseObject({ channel: v.string() })),
    )
    if (args.json) printJson(answer)
    else print(`${answer.channel} is disabled.`)
    return exits.ok
  },
})
