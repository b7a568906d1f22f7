import { callDaemon, connect, defineCommand, exits, Failure, print, printJson } from 'svc/cli'
import { fieldArgs, Goal, goalArgs, requireGoal, titleOf, toBody } from './goal.ts'

export default defineCommand({
  description: 'Change a goal. `none` removes its agent, its parent or its due date.',
  args: {
    ...goalArgs,
    title: { type: 'string', description: 'A new title', valueHint: 'text' },
    ...fieldArgs,
  },
  examples: [
    ['svc goal update "Collect sources" --status in_progress --progress 30', 'how far it is'],
    ['svc goal update "Collect sources" --parent none', 'it is a part of nothing any more'],
  ],
  async run(args) {
    const changed = await callDaemon(await connect(args), async (client) => {
      const body = { ...(args.title === undefined ? {} : { title: args.title }), ...(await toBody(client, args)) }
      if (Object.keys(body).length === 0)
        throw new Failure(exits.usage, 'nothing to change', 'give --status, --progress or another field')
      const { id } = await requireGoal(client, args.goal)
      return client.call('PUT', `/api/goals/${id}`, Goal, { body })
    })
    if (args.json) printJson(changed)
    else print(`"${titleOf(changed)}" is ${changed.status.replace('_', ' ')}, ${changed.progress}% done.`)
    return exits.ok
  },
})
