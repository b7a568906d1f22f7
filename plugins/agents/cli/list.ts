import {
  callDaemon,
  clientArgs,
  defineCommand,
  commandLine,
  connect,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { listAgents } from './client.ts'

export default defineCommand({
  description: 'List the agents, oldest first.',
  args: clientArgs,
  examples: [
    ['svc agent list', 'names, states and models'],
    ["svc agent list --json | jq '.[].id'", 'ids for a script'],
  ],
  async run(args) {
    const agents = await callDaemon(await connect(args), listAgents)
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
