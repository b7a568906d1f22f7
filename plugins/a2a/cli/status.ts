import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { describeTask, SentTask } from './external.ts'

export default defineCommand({
  description: 'How a message is that was sent to an agent on another system, and what became of it.',
  args: {
    task: { type: 'positional', required: true, description: 'Id of the task, ours or the one of the other side' },
    agent: { type: 'string', description: 'The agent, if several have a task with this id', valueHint: 'address' },
    ...clientArgs,
  },
  examples: [['svc a2a status 0192f0c1-…', 'asks the other side if it has not ended']],
  async run(args) {
    const query = args.agent === undefined ? '' : `?url=${encodeURIComponent(args.agent)}`
    const task = await callDaemon(await connect(args), (client) =>
      client.call('GET', `/api/a2a/tasks/${encodeURIComponent(args.task)}/status${query}`, SentTask),
    )
    if (args.json) printJson(task)
    else print(describeTask(task))
    return exits.ok
  },
})
