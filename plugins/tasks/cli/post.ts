import { callDaemon, clientArgs, connect, defineCommand, exits, omitUndefined, print, printJson } from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'
import { Task } from './task.ts'

export default defineCommand({
  description: 'Post a task for an agent, which begins to work on it, or for any that claims it.',
  args: {
    title: { type: 'positional', required: true, description: 'What to do, in a few words' },
    description: { type: 'string', description: 'What to do, in full', valueHint: 'text' },
    to: { type: 'string', description: 'Name or id of an agent (default: any)', valueHint: 'agent' },
    wait: { type: 'boolean', description: 'Only put it there: the agent gets no turn for it' },
    ...clientArgs,
  },
  examples: [
    ['svc task post "Read the news" --to assistant', 'the agent begins at once'],
    ['svc task post "Water the plants" --description "All but the cactus"', 'whoever claims it first'],
  ],
  async run(args) {
    const posted = await callDaemon(await connect(args), async (client) => {
      const agent = args.to === undefined ? undefined : await requireAgent(client, args.to)
      const more = omitUndefined({ description: args.description, assigned_to: agent?.id })
      return client.call('POST', '/api/tasks', Task, {
        body: { title: args.title, ...more, ...(args.wait && { wake: false }) },
      })
    })
    if (args.json) printJson(posted)
    else print(`The task ${posted.id} is posted.`)
    return exits.ok
  },
})
