import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
} from 'svc/cli'
import { countOf, requireSession, sessionArgs } from './client.ts'

const Branched = v.looseObject({ session_id: v.string(), label: v.nullish(v.string()), message_count: v.number() })

export default defineCommand({
  description:
    'Begin a new conversation with a copy of an old one, up to one of its messages. The old one stays as it is; the ' +
    'new one is the active one of its agent.',
  args: {
    ...sessionArgs,
    at: {
      type: 'string',
      valueHint: 'message',
      description: `Last message to copy, by its number in ${commandLine('session show <session>')} or its id (default: the last one)`,
    },
    label: { type: 'string', valueHint: 'label', description: 'Label of the new one (default: the title, “(branch)”)' },
    ...clientArgs,
  },
  examples: [
    ['svc session branch 1', 'go another way from here'],
    ['svc session branch taxes --at 4', 'without what came after the fourth message'],
  ],
  async run(args) {
    const message = /^\d{1,9}$/.test(args.at ?? '') ? Number(args.at) : args.at
    const answer = await callDaemon(await connect(args), async (client) => {
      const { id } = await requireSession(client, args.session, args.agent)
      return client.call('POST', `/api/sessions/${id}/branch`, Branched, { body: { message, label: args.label } })
    })
    if (args.json) printJson(answer)
    else
      print(
        `session ${answer.session_id} (${escapeControls(answer.label ?? '')}) begins with ` +
          `${countOf(answer.message_count)} and is the active one now`,
      )
    return exits.ok
  },
})
