import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { agentArg, Entry, levelArg, limitArg, queryOf, tableOf } from './memory.ts'

const Found = v.looseObject({ memories: v.array(Entry), index: v.string() })

const NOTES = new Map([
  ['words_only', 'Some memories could be found by their words only so far.'],
  ['filling', 'Some memories of an older version cannot be found by their words yet.'],
])

export default defineCommand({
  description: 'Search memories by words and meaning.',
  args: {
    text: { type: 'positional', required: true, description: 'A question, or words' },
    agent: agentArg,
    level: levelArg,
    limit: limitArg,
    ...clientArgs,
  },
  examples: [
    ['svc memory search "Where does Ann live?"', 'in the memories of all agents'],
    ['svc memory search bicycle --agent assistant --json', 'in those of one, for a script'],
  ],
  async run(args) {
    const query = queryOf({ q: args.text, agent_id: args.agent, level: args.level, limit: args.limit })
    const found = await callDaemon(await connect(args), (client) =>
      client.call('GET', `/api/memory/search?${query}`, Found),
    )
    if (args.json) printJson(found)
    else if (found.memories.length > 0) print(tableOf(found.memories))
    else print(`Nothing is known about "${args.text}".`)
    const note = NOTES.get(found.index)
    if (!args.json && note !== undefined) print(note)
    return exits.ok
  },
})
