import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { asTree, dueOf, listGoals, titleOf } from './goal.ts'

export default defineCommand({
  description: 'List the goals, each below the one it is a part of.',
  args: {
    status: { type: 'string', description: 'Only those with this status', valueHint: 'in_progress' },
    ...clientArgs,
  },
  examples: [
    ['svc goal list', 'all goals as a tree'],
    ['svc goal list --status in_progress --json', 'what is being worked on, for a script'],
  ],
  async run(args) {
    const query = args.status === undefined ? '' : `status=${encodeURIComponent(args.status)}`
    const goals = await callDaemon(await connect(args), (client) => listGoals(client, query))
    if (args.json) printJson({ goals })
    else if (goals.length === 0)
      print(
        args.status === undefined
          ? `There are no goals. ${commandLine('goal add "Publish the report"')} makes one.`
          : 'There are none with this status.',
      )
    else
      print(
        renderTable(
          ['GOAL', 'STATUS', 'DONE', 'DUE', 'ID'],
          asTree(goals).map(({ goal, depth }) => [
            '  '.repeat(depth) + titleOf(goal),
            goal.status,
            `${goal.progress}%`,
            dueOf(goal),
            goal.id,
          ]),
        ),
      )
    return exits.ok
  },
})
