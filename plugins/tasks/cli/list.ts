import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  omitUndefined,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'
import { agentNames, listTasks } from './task.ts'

const MAX_TITLE = 50

export default defineCommand({
  description: 'List tasks, the newest first.',
  args: {
    status: {
      type: 'string',
      description: 'pending, in_progress, completed, failed or cancelled',
      valueHint: 'status',
    },
    agent: { type: 'string', description: 'Only those for this agent', valueHint: 'name' },
    limit: { type: 'string', description: 'How many (default: 100)', valueHint: 'number' },
    ...clientArgs,
  },
  examples: [
    ['svc task list', 'all that is kept'],
    ['svc task list --status failed --agent scout', 'what an agent could not do'],
  ],
  async run(args) {
    const { answer, nameOf } = await callDaemon(await connect(args), async (client) => {
      const agent = args.agent === undefined ? undefined : await requireAgent(client, args.agent)
      const query = omitUndefined({ status: args.status, limit: args.limit, assigned_to: agent?.id })
      return { answer: await listTasks(client, new URLSearchParams(query)), nameOf: await agentNames(client) }
    })
    if (args.json) printJson(answer)
    else if (answer.tasks.length === 0 && (args.status !== undefined || args.agent !== undefined))
      print(`There are no such tasks. ${commandLine('task list')} shows all of them.`)
    else if (answer.tasks.length === 0)
      print(`There are no tasks. ${commandLine('task post "Read the news" --to assistant')} posts one.`)
    else
      print(
        renderTable(
          ['TITLE', 'STATUS', 'FOR', 'WORKS ON IT', 'ID'],
          answer.tasks.map((task) => [
            escapeControls(task.title).slice(0, MAX_TITLE),
            task.status,
            escapeControls(nameOf(task.assigned_to)) || 'any',
            escapeControls(nameOf(task.claimed_by)),
            task.id,
          ]),
        ),
      )
    return exits.ok
  },
})
