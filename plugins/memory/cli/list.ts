import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, print, printJson } from 'svc/cli'
import { agentIdOf } from './agent.ts'
import { agentArg, Entry, levelArg, limitArg, queryOf, tableOf } from './memory.ts'

const Listed = v.looseObject({ memories: v.array(Entry), total: v.number() })

export default defineCommand({
  description: 'List memories, the newest first.',
  args: {
    agent: agentArg,
    user: { type: 'string', description: 'Only what is kept for this person', valueHint: 'id' },
    level: levelArg,
    category: { type: 'string', description: 'Only of this category', valueHint: 'preference' },
    limit: limitArg,
    ...clientArgs,
  },
  examples: [
    ['svc memory list', 'the newest ten of all agents'],
    ['svc memory list --agent assistant --level user --limit 100', 'what an agent knows about people'],
  ],
  async run(args) {
    const query = queryOf({ level: args.level, category: args.category, limit: args.limit })
    const listed = await callDaemon(await connect(args), async (client) => {
      if (args.agent !== undefined && args.user !== undefined)
        throw new Failure(exits.usage, '--agent and --user are not for one list', 'name one of them')
      const ofUser = args.user === undefined ? '' : `/user/${encodeURIComponent(args.user)}`
      const place = args.agent === undefined ? ofUser : `/agents/${await agentIdOf(client, args.agent)}`
      return client.call('GET', `/api/memory${place}?${query}`, Listed)
    })
    if (args.json) printJson(listed)
    else if (listed.memories.length === 0) print('There are no memories.')
    else print(`${tableOf(listed.memories)}\n${listed.memories.length} of ${listed.total}`)
    return exits.ok
  },
})
