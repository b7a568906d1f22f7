import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { channelArgs, channelPath } from './client.ts'

export default defineCommand({
  description: 'Connect an account of a channel. One that gave up tries again.',
  args: channelArgs,
  examples: [['svc channels enable telegram', 'the account of Telegram']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('PUT', channelPath(args.channel, 'enable', args.account), v.looseObject({ channel: v.string() })),
    )
    if (args.json) printJson(answer)
    else print(`${answer.channel} is enabled and connects.`)
    return exits.ok
  },
})
