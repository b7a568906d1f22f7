import * as v from 'valibot'
import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { dueOf, Goal, goalArgs, requireGoal, titleOf } from './goal.ts'

const Children = v.looseObject({ children: v.array(Goal) })

export default defineCommand({
  description: 'Show a goal with its sub-goals.',
  args: goalArgs,
  examples: [['svc goal show "Publish the report"', 'by its title']],
  async run(args) {
    const { goal, children } = await callDaemon(await connect(args), async (client) => {
      const found = await requireGoal(client, args.goal)
      return { goal: found, ...(await client.call('GET', `/api/goals/${found.id}/children`, Children)) }
    })
    if (args.json) printJson({ ...goal, children })
    else
      print(
        [
          `${titleOf(goal)} (${goal.id})`,
          ...(goal.description === '' ? [] : [escapeControls(goal.description)]),
          `status   ${goal.status}, ${goal.progress}%`,
          ...(goal.agent_id === null ? [] : [`agent    ${goal.agent_id}`]),
          ...(goal.due_at === null ? [] : [`due      ${dueOf(goal)}`]),
          ...children.map((child) => `- ${titleOf(child)}: ${child.status}, ${child.progress}%`),
        ].join('\n'),
      )
    return exits.ok
  },
})
