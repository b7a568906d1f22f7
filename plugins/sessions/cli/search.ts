import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  defineCommand,
  connect,
  exits,
  print,
  printJson,
  renderTable,
  renderTime,
} from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'

const Found = v.looseObject({
  session_id: v.string(),
  label: v.nullable(v.string()),
  role: v.string(),
  created_at: v.string(),
  snippet: v.string(),
})
const Answer = v.looseObject({ results: v.array(Found), complete: v.boolean() })

export default defineCommand({
  description: 'Find what was said in conversations: messages of people and agents that have all words, newest first.',
  args: {
    words: { type: 'positional', required: true, description: 'Words, in capital letters or not' },
    agent: { type: 'string', valueHint: 'agent', description: 'Only conversations with this agent, by name or id' },
    limit: { type: 'string', valueHint: 'number', description: 'How many at most (default: 20)' },
    ...clientArgs,
  },
  examples: [
    ['svc session search "boat kiel"', 'what was said about the boat in Kiel'],
    ['svc session search taxes --agent scout --limit 3', 'to one agent, the last three times'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), async (client) => {
      const agent = args.agent === undefined ? undefined : await requireAgent(client, args.agent)
      const query = new URLSearchParams({
        q: args.words,
        ...(agent && { agent_id: agent.id }),
        ...(args.limit !== undefined && { limit: args.limit }),
      })
      return client.call('GET', `/api/sessions/search?${query}`, Answer)
    })
    if (args.json) printJson(answer)
    else if (answer.results.length === 0) print('Nobody said that.')
    else
      print(
        renderTable(
          ['WHEN', 'WHO', 'TEXT', 'SESSION'],
          answer.results.map(({ created_at: at, role, snippet, session_id: id, label }) => [
            renderTime(at),
            role,
            snippet,
            label ?? id,
          ]),
        ),
      )
    if (!answer.complete && !args.json) print('Not all messages were looked at.')
    return exits.ok
  },
})
