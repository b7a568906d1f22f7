import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { agentIdOf } from './agent.ts'
import { agentArg } from './memory.ts'

const Stats = v.looseObject({
  total: v.number(),
  user_count: v.number(),
  session_count: v.number(),
  agent_count: v.number(),
  categories: v.record(v.string(), v.number()),
  without_vector: v.number(),
  without_words: v.number(),
})

export default defineCommand({
  description: 'Show how many memories there are.',
  args: { agent: agentArg, ...clientArgs },
  examples: [['svc memory stats --agent assistant', 'those of one agent']],
  async run(args) {
    const stats = await callDaemon(await connect(args), async (client) => {
      const place = args.agent === undefined ? '' : `/agents/${await agentIdOf(client, args.agent)}`
      return client.call('GET', `/api/memory${place}/stats`, Stats)
    })
    if (args.json) printJson(stats)
    else
      print(
        [
          `${stats.total} ${stats.total === 1 ? 'memory' : 'memories'}: ${stats.user_count} of users, ${stats.session_count} of sessions, ${stats.agent_count} of agents`,
          ...Object.entries(stats.categories).map(([name, count]) => `${name}  ${count}`),
          ...(stats.without_words === 0 ? [] : [`${stats.without_words} are not found by their words yet`]),
          ...(stats.without_vector === 0 ? [] : [`${stats.without_vector} have no vector yet`]),
        ].join('\n'),
      )
    return exits.ok
  },
})
