import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { ExternalAgent } from './external.ts'

export default defineCommand({
  description: 'List the agents on other systems that are known, and whether they are trusted.',
  args: clientArgs,
  examples: [
    ['svc a2a list', 'who is known'],
    ["svc a2a list --json | jq -r '.[].url'", 'their addresses, for a script'],
  ],
  async run(args) {
    const { agents } = await callDaemon(await connect(args), (client) =>
      client.call('GET', '/api/a2a/agents', v.looseObject({ agents: v.array(ExternalAgent) })),
    )
    if (args.json) printJson(agents)
    else if (agents.length === 0)
      print(`No agents elsewhere are known. ${commandLine('a2a discover https://…')} finds one.`)
    else
      print(
        renderTable(
          ['NAME', 'STATE', 'SKILLS', 'ADDRESS'],
          agents.map(({ name, status, skills, url }) => [
            escapeControls(name),
            status,
            String(skills.length),
            escapeControls(url),
          ]),
        ),
      )
    return exits.ok
  },
})
