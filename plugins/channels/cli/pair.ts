import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, omitUndefined, print, printJson, renderDuration } from 'svc/cli'
import { channelArgs, channelPath } from './client.ts'

const Code = v.looseObject({ pairing_code: v.string(), expires_at: v.string(), role: v.string() })

export default defineCommand({
  description: 'Make a code that one person sends to the bot in a direct chat, and may talk to it from then on.',
  args: {
    ...channelArgs,
    operator: { type: 'boolean', description: 'May also approve what agents do, and change the model' },
  },
  examples: [
    ['svc channels pair telegram', 'a code for one person'],
    ['svc channels pair telegram --operator', 'for yourself'],
  ],
  async run(args) {
    const body = omitUndefined({ account_id: args.account, role: args.operator ? 'operator' : 'user' })
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', channelPath(args.channel, 'pairing'), Code, { body }),
    )
    const left = renderDuration(Math.max(0, Math.ceil((Date.parse(answer.expires_at) - Date.now()) / 1000)))
    if (args.json) printJson(answer)
    else print(`Pairing code: ${answer.pairing_code}\nIt works once, for ${left}: send it to the bot in a direct chat.`)
    return exits.ok
  },
})
