import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { agentIdOf } from './agent.ts'
import { memoriesAre } from './memory.ts'

const Merged = v.looseObject({ merged_count: v.number() })

export default defineCommand({
  description: 'Keep one of the memories of an agent that say the same: your own word before text from outside.',
  args: { agent: { type: 'positional', required: true, description: 'Name or id of the agent' }, ...clientArgs },
  examples: [['svc memory consolidate assistant', 'after a look at svc memory duplicates assistant']],
  async run(args) {
    const answer = await callDaemon(await connect(args), async (client) =>
      client.call('POST', `/api/memory/agents/${await agentIdOf(client, args.agent)}/consolidate`, Merged),
    )
    if (args.json) printJson(answer)
    else print(`${memoriesAre(answer.merged_count)} deleted that said the same as another.`)
    return exits.ok
  },
})
