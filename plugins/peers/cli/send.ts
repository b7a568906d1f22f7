import * as v from 'valibot'
import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { pathOf, peerArgs } from './peer.ts'

const Answer = v.looseObject({ message_id: v.string(), text: v.string() })

/** Longer than the daemon waits, whose limits hold. */
const ANSWER_MS = 86_400_000

export default defineCommand({
  description: 'Send a message to an agent of another daemon, and print its answer.',
  args: {
    ...peerArgs,
    agent: { type: 'positional', required: true, description: 'Id or name of the agent there' },
    message: { type: 'positional', required: true, description: 'What to say' },
  },
  examples: [['svc peer send bob assistant "What is new?"', 'waits for the answer']],
  async run(args) {
    const { agent, message } = args
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', `${pathOf(args.peer)}/messages`, Answer, { body: { agent, message }, timeoutMs: ANSWER_MS }),
    )
    if (args.json) printJson(answer)
    else print(escapeControls(answer.text))
    return exits.ok
  },
})
