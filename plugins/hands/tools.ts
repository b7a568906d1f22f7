import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Runtime } from './runtime.ts'
import { HandId, InstanceName, InstanceParams, Values } from './schema.ts'

/** What an instance has recorded may be the words of a page. */
const labels = ['ExternalNetwork']
const refuses = ['ExternalNetwork', 'UntrustedAgent']

export function handTools(open: () => Promise<Runtime>): readonly AnyTool[] {
  const calls = async () => (await open()).toolCalls
  const hand_id = v.pipe(HandId, v.description('As hand_list names it'))
  const list = defineTool({
    name: 'hand_list',
    risk: 'read',
    description: 'The hands, agents with a trade that work on a schedule, and their instances. Answers JSON.',
    input: v.object({}),
    run: async () => (await calls()).list(),
  })
  const status = defineTool({
    name: 'hand_status',
    risk: 'read',
    labels,
    description: 'How the instances of a hand do: state, last and next run, figures of the dashboard. Answers JSON.',
    input: v.object({ hand_id }),
    run: async (input, call) => (await calls()).status(input.hand_id, call),
  })
  const activate = defineTool({
    name: 'hand_activate',
    risk: 'execute',
    effect: 'lasting',
    refuses,
    description:
      'Make an instance of a hand. It may do nothing that you may not do. config: values of its settings. Answers JSON.',
    input: v.object({
      hand_id,
      config: v.optional(Values, {}),
      instance_name: v.optional(InstanceName),
    }),
    assess: ({ hand_id: hand }) => ({ intent: `let the hand "${hand}" work on a schedule`, standing: 'once' }),
    run: async (input, call) => (await calls()).activate(input, call),
    recover: async (_, call) => (await calls()).recover(call),
  })
  const deactivate = defineTool({
    name: 'hand_deactivate',
    risk: 'execute',
    effect: 'lasting',
    refuses,
    description: 'Remove an instance of a hand that you activated, with its agent.',
    input: v.object({ instance_id: InstanceParams.entries.id }),
    assess: () => ({ intent: 'remove a hand and its agent', standing: 'once' }),
    run: async (input, call) => (await calls()).deactivate(input.instance_id, call),
  })
  return [list, status, activate, deactivate]
}
