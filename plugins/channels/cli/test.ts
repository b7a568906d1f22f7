import {
  callDaemon,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  omitUndefined,
  print,
  printJson,
} from 'svc/cli'
import { channelArgs, testChannel } from './client.ts'

export default defineCommand({
  description:
    'Check the credentials of a channel, or send a test message to a chat. The exit code is 1 when it fails.',
  args: { ...channelArgs, chat: { type: 'string', description: 'Send a test message to this chat', valueHint: 'id' } },
  examples: [
    ['svc channels test telegram', 'are the credentials accepted?'],
    ['svc channels test telegram --chat 4711', 'sends a message'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      testChannel(client, args.channel, omitUndefined({ chat: args.chat, account: args.account })),
    )
    if (args.json) printJson(answer)
    else if (answer.status === 'ok') print(escapeControls(answer.message))
    else throw new Failure(exits.failed, escapeControls(answer.message), answer.help && escapeControls(answer.help))
    return answer.status === 'ok' ? exits.ok : exits.failed
  },
})
