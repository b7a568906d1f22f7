import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { agentIdOf } from './agent.ts'
import { Entry, tableOf } from './memory.ts'

const Duplicates = v.looseObject({ duplicate_groups: v.number(), groups: v.array(v.array(Entry)) })

export default defineCommand({
  description: 'Show memories of an agent that say the same, of each group first the one that is kept.',
  args: { agent: { type: 'positional', required: true, description: 'Name or id of the agent' }, ...clientArgs },
  examples: [['svc memory duplicates assistant', 'what consolidate would delete']],
  async run(args) {
    const found = await callDaemon(await connect(args), async (client) =>
      client.call('GET', `/api/memory/agents/${await agentIdOf(client, args.agent)}/duplicates`, Duplicates),
    )
    if (args.json) printJson(found)
    else print(found.groups.map(tableOf).join('\n\n') || 'No memories say the same.')
    return exits.ok
  },
})
