import * as v from 'valibot'
import { callDaemon, clientArgs, defineCommand, connect, exits, print, printJson } from 'svc/cli'
import { requireAgent } from './client.ts'

export default defineCommand({
  description: 'End an agent and remove it.',
  args: { agent: { type: 'positional', required: true, description: 'Name or id of the agent' }, ...clientArgs },
  examples: [
    ['svc agent kill scout', 'by name'],
    ['svc agent kill 0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d', 'by id'],
  ],
  async run(args) {
    const connection = await connect(args)
    const { agent, answer } = await callDaemon(connection, async (client) => {
      const found = await requireAgent(client, args.agent)
      return { agent: found, answer: await client.call('DELETE', `/api/agents/${found.id}`, v.unknown()) }
    })
    if (args.json) printJson(answer)
    else print(`agent "${agent.name}" (${agent.id}) was removed`)
    return exits.ok
  },
})
