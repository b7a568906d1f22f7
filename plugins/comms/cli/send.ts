import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  omitUndefined,
  print,
  printJson,
} from 'svc/cli'

const Sent = v.looseObject({ message_id: v.string(), response: v.optional(v.string()) })

export default defineCommand({
  description: 'Send a message to an agent and print its answer, or to a chat.',
  args: {
    to: { type: 'positional', required: true, description: 'An agent, or channel:<name>:<chat>' },
    message: { type: 'positional', required: true, description: 'The text' },
    from: { type: 'string', description: 'Agent whose message it is', valueHint: 'agent' },
    ...clientArgs,
  },
  examples: [
    ['svc comms send writer "Shorten this: …" --from assistant', 'as one agent to another'],
    ['svc comms send channel:telegram:4711 "The report is there."', 'to a chat'],
  ],
  async run(args) {
    const body = omitUndefined({ to: args.to, content: args.message, from: args.from })
    const sent = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/comms/send', Sent, { body, timeoutMs: 0 }),
    )
    if (args.json) printJson(sent)
    else
      print(sent.response === undefined ? `Message ${sent.message_id} is on its way.` : escapeControls(sent.response))
    return exits.ok
  },
})
