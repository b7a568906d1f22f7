import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { fieldArgs, Goal, titleOf, toBody } from './goal.ts'

export default defineCommand({
  description: 'Make a goal.',
  args: {
    title: { type: 'positional', required: true, description: 'What is to be reached' },
    ...fieldArgs,
    ...clientArgs,
  },
  examples: [
    ['svc goal add "Publish the report" --due 2026-12-31T18:00:00Z', 'a goal of nobody in particular'],
    ['svc goal add "Collect sources" --parent "Publish the report" --agent scout', 'a part of it, for an agent'],
  ],
  async run(args) {
    const made = await callDaemon(await connect(args), async (client) =>
      client.call('POST', '/api/goals', Goal, { body: { title: args.title, ...(await toBody(client, args)) } }),
    )
    if (args.json) printJson(made)
    else print(`"${titleOf(made)}" (${made.id}) is made.`)
    return exits.ok
  },
})
