import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { channelArgs, channelPath } from './client.ts'

const Removed = v.looseObject({ channel: v.string(), account_id: v.string(), note: v.string() })

export default defineCommand({
  description: 'Remove an account of a channel with its secrets. One that is in config.toml is removed there.',
  args: channelArgs,
  examples: [['svc channels remove telegram --account support', 'one of several accounts']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('DELETE', channelPath(args.channel, 'configure', args.account), Removed),
    )
    if (args.json) printJson(answer)
    else print(`${answer.channel} (${answer.account_id}) is removed. ${answer.note}`)
    return exits.ok
  },
})
