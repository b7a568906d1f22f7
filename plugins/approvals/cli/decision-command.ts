import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  repeatedFlag,
  terminalMode,
} from 'svc/cli'
import type { Command } from 'svc/cli'
import { decide } from './approval.ts'
import type { Approval, FormAnswers } from './approval.ts'
import { askFields, filledIn, readAssignments } from './form.ts'

export const REASON = {
  reason: { type: 'string', valueHint: 'text', description: 'Why; the agent reads it' },
} as const

/** The command that gives one of the two answers. */
export function decisionCommand(
  verb: 'approve' | 'reject',
  texts: {
    readonly description: string
    readonly args?: Command['args']
    readonly examples: Command['examples']
  },
): Command {
  return defineCommand({
    description: texts.description,
    args: {
      id: { type: 'positional', required: true, description: 'Id of the approval, or the beginning of it' },
      ...texts.args,
      ...clientArgs,
    },
    examples: texts.examples,
    async run(args, words) {
      const set = readAssignments(repeatedFlag(words, 'set'))
      const fill = (approval: Approval): Promise<FormAnswers> | FormAnswers | undefined =>
        approval.form && terminalMode().canType && !args.json ? askFields(approval, set) : filledIn(approval, set)
      const reason = typeof args['reason'] === 'string' ? args['reason'] : undefined
      const { approval, answer } = await callDaemon(await connect(args), (client) =>
        decide(client, verb, args.id, { fill, reason }),
      )
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
