import * as v from 'valibot'
import { callDaemon, clientArgs, defineCommand, connect, exits, print, printJson, renderFacts } from 'svc/cli'
import { requireAgent } from './client.ts'

const Detail = v.looseObject({
  id: v.string(),
  name: v.string(),
  state: v.string(),
  created_at: v.optional(v.string(), ''),
  session_id: v.optional(v.string(), ''),
  model: v.object({ provider: v.string(), model: v.string() }),
  capabilities: v.optional(
    v.looseObject({ tools: v.optional(v.array(v.string()), []), network: v.optional(v.array(v.string()), []) }),
    {},
  ),
  description: v.optional(v.string(), ''),
  tags: v.optional(v.array(v.string()), []),
})

export default defineCommand({
  description: 'Show one agent.',
  args: { agent: { type: 'positional', required: true, description: 'Name or id of the agent' }, ...clientArgs },
  examples: [
    ['svc agent show assistant', 'by name'],
    ['svc agent show assistant --json', 'all fields of the agent'],
  ],
  async run(args) {
    const agent = await callDaemon(await connect(args), async (client) =>
      client.call('GET', `/api/agents/${(await requireAgent(client, args.agent)).id}`, Detail),
    )
    if (args.json) printJson(agent)
    else {
      print(
        renderFacts([
          ['name', agent.name],
          ['id', agent.id],
          ['state', agent.state],
          ['model', `${agent.model.provider}/${agent.model.model}`],
          ['description', agent.description],
          ['tags', agent.tags.join(', ')],
          ['tools', agent.capabilities.tools.join(', ')],
          ['network', agent.capabilities.network.join(', ')],
          ['session', agent.session_id],
          ['created', agent.created_at],
        ]),
      )
    }
    return exits.ok
  },
})
