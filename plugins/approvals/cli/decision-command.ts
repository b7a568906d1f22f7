import { callDaemon, clientArgs, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import type { Command } from 'svc/cli'
import { decide } from './approval.ts'

/** The command that gives one of the two answers. */
export function decisionCommand(
  verb: 'approve' | 'reject',
  texts: { readonly name?: string; readonly description: string; readonly meaning: string },
): Command {
  return defineCommand({
    description: texts.description,
    args: {
      id: { type: 'positional', required: true, description: 'Id of the approval, or the beginning of it' },
      ...clientArgs,
    },
    examples: [[`svc approval ${texts.name ?? verb} 0f6a9c1e`, texts.meaning]],
    async run(args) {
      const { approval, answer } = await callDaemon(await connect(args), (client) => decide(client, verb, args.id))
      if (args.json) {
        printJson(answer)
        return exits.ok
      }
      if (answer.status === 'pending') {
        print(`approved ${approval.id} as the first of two people: another person has to approve it too`)
        return exits.ok
      }
      const verdict = answer.status === 'approved' ? 'may' : 'may not'
      const action = escapeControls(approval.action_summary)
      print(`${answer.status} ${approval.id}: ${approval.agent_name} ${verdict} do this: ${action}`)
      return exits.ok
    },
  })
}
