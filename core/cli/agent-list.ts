import * as v from 'valibot'
import { clientArgs, command } from './command.ts'
import { AgentItem, ask, connect } from './connect.ts'
import { exits } from './failure.ts'
import { print, printJson, renderTable } from './output.ts'
import { commandLine } from '../process/command-name.ts'

export default command({
  description: 'List the agents, oldest first.',
  args: clientArgs,
  examples: [
    ['svc agent list', 'names, states and models'],
    ["svc agent list --json | jq '.[].id'", 'ids for a script'],
  ],
  async run(args) {
    const agents = await ask(await connect(args), (client) => client.call('GET', '/api/agents', v.array(AgentItem)))
    if (args.json) printJson(agents)
    else if (agents.length === 0)
      print(`There are no agents. Spawn one with ${commandLine('agent spawn <manifest.toml>')}.`)
    else
      print(
        renderTable(
          ['NAME', 'STATE', 'MODEL', 'ID', 'CREATED'],
          agents.map((agent) => [
            agent.name,
            agent.state,
            `${agent.model_provider}/${agent.model_name}`,
            agent.id,
            agent.created_at,
          ]),
        ),
      )
    return exits.ok
  },
})
