import { callDaemon, clientArgs, connect, defineCommand, exits, omitUndefined, print, printJson } from 'svc/cli'
import { agentArgs, describeTask, SentTask } from './external.ts'

export default defineCommand({
  description: 'Send a message to an agent on another system that is trusted, and wait for its answer.',
  args: {
    agent: agentArgs.agent,
    message: { type: 'positional', required: true, description: 'What it is told' },
    session: { type: 'string', description: 'Conversation there that it continues', valueHint: 'id' },
    task: { type: 'string', description: 'Task there that waits for this answer', valueHint: 'id' },
    ...clientArgs,
  },
  examples: [
    ['svc a2a send translator "Translate: good morning"', 'waits for the answer'],
    ['svc a2a send translator "Formal, please" --session c-17', 'in the same conversation'],
  ],
  async run(args) {
    const body = {
      agent_id: args.agent,
      message: args.message,
      ...omitUndefined({ session_id: args.session, task_id: args.task }),
    }
    const task = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/a2a/send', SentTask, { body }),
    )
    if (args.json) printJson(task)
    else print(describeTask(task))
    return task.status === 'failed' || task.status === 'rejected' ? exits.failed : exits.ok
  },
})
