import * as v from 'valibot'
import { callDaemon, clientArgs, defineCommand, commandLine, connect, exits, Failure, print, printJson } from 'svc/cli'
import { requireSession, sessionArgs } from './client.ts'

const Labelled = v.looseObject({ session_id: v.string(), label: v.nullable(v.string()) })

export default defineCommand({
  description: 'Label a conversation, so that commands can name it by the label, or remove the label.',
  args: {
    session: sessionArgs.session,
    label: { type: 'positional', required: false, description: 'Letters, digits, spaces, hyphens and underscores' },
    agent: sessionArgs.agent,
    remove: { type: 'boolean', description: 'Remove the label' },
    ...clientArgs,
  },
  examples: [
    ['svc session label 1 taxes', 'then: svc chat --session taxes'],
    ['svc session label taxes --remove', 'without a label again'],
  ],
  async run(args) {
    if ((args.label === undefined) !== (args.remove === true))
      throw new Failure(exits.usage, 'give a label or --remove', `for example: ${commandLine('session label 1 taxes')}`)
    const answer = await callDaemon(await connect(args), async (client) =>
      client.call(
        'PUT',
        `/api/sessions/${(await requireSession(client, args.session, args.agent)).id}/label`,
        Labelled,
        { body: { label: args.label ?? null } },
      ),
    )
    if (args.json) printJson(answer)
    else
      print(
        answer.label === null
          ? `session ${answer.session_id} has no label now`
          : `session ${answer.session_id} is labelled "${answer.label}"`,
      )
    return exits.ok
  },
})
