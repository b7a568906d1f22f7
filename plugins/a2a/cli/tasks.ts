import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
  shorten,
} from 'svc/cli'

const Tasks = v.looseObject({
  tasks: v.array(
    v.looseObject({
      task_id: v.string(),
      status: v.string(),
      updated_at: v.string(),
      messages: v.array(v.looseObject({ parts: v.array(v.looseObject({ text: v.optional(v.string()) })) })),
    }),
  ),
})

export default defineCommand({
  description: 'List the tasks that other programs gave to agents here, the latest first.',
  args: {
    agent: { type: 'string', description: 'Only those of this agent' },
    limit: { type: 'string', default: '20', description: 'How many at most, up to 100' },
    ...clientArgs,
  },
  examples: [
    ['svc a2a tasks', 'what others asked for'],
    ["svc a2a tasks --agent scout --json | jq -r '.[].task_id'", 'the ids of the tasks of an agent'],
  ],
  async run(args) {
    const query = new URLSearchParams({ limit: args.limit })
    if (args.agent !== undefined) query.set('agent', args.agent)
    const { tasks } = await callDaemon(await connect(args), (client) =>
      client.call('GET', `/a2a/tasks?${query.toString()}`, Tasks),
    )
    if (args.json) printJson(tasks)
    else if (tasks.length === 0) print('No program has given an agent here a task over A2A.')
    else
      print(
        renderTable(
          ['TASK', 'STATUS', 'CHANGED', 'MESSAGE'],
          tasks.map(({ task_id: id, status, updated_at: at, messages }) => [
            id,
            status,
            at,
            shorten(escapeControls(messages[0]?.parts[0]?.text ?? ''), 60),
          ]),
        ),
      )
    return exits.ok
  },
})
