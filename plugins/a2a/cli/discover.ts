import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  exits,
  omitUndefined,
  print,
  printJson,
} from 'svc/cli'
import { describeAgent, Discovered } from './external.ts'

export default defineCommand({
  description: 'Read the card of an agent on another system. Nothing is sent to the agent before you trust it.',
  args: {
    address: { type: 'positional', required: true, description: 'Address of the agent, or of its card' },
    name: { type: 'string', description: 'What it is called here (default: as in its card)', valueHint: 'name' },
    ...clientArgs,
  },
  examples: [['svc a2a discover https://agents.example.com', 'shows what it says of itself']],
  async run(args) {
    const body = { url: args.address, ...omitUndefined({ name: args.name }) }
    const found = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/a2a/discover', Discovered, { body }),
    )
    if (args.json) printJson(found)
    else {
      print(describeAgent(found.agent))
      if (found.status === 'pending') print(`\nTrust it with ${commandLine(`a2a approve ${found.agent.id}`)}`)
    }
    return exits.ok
  },
})
