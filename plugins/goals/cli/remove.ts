import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { goalArgs, requireGoal, titleOf } from './goal.ts'

const Deleted = v.looseObject({ deleted: v.number() })

export default defineCommand({
  description: 'Delete a goal with everything below it.',
  args: goalArgs,
  examples: [['svc goal remove "Publish the report"', 'by its title']],
  async run(args) {
    const { goal, answer } = await callDaemon(await connect(args), async (client) => {
      const found = await requireGoal(client, args.goal)
      return { goal: found, answer: await client.call('DELETE', `/api/goals/${found.id}`, Deleted) }
    })
    const below = answer.deleted - 1
    if (args.json) printJson(answer)
    else print(`"${titleOf(goal)}" is deleted${below === 0 ? '' : ` with ${below} below it`}.`)
    return exits.ok
  },
})
