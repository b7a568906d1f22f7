import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, omitUndefined, print, printJson, readSecret } from 'svc/cli'
import { agentArgs, agentPath } from './external.ts'

export default defineCommand({
  description:
    'Store the secret with which the daemon proves itself to an agent. It is read from the terminal or a pipe.',
  args: {
    ...agentArgs,
    header: { type: 'string', description: 'Header it is sent in (default: Authorization: Bearer)', valueHint: 'name' },
  },
  examples: [
    ['svc a2a credential translator', 'asks for it'],
    ['svc a2a credential translator --header X-API-Key < key.txt', 'from a file'],
  ],
  async run(args) {
    const connection = await connect(args)
    const body = { secret: await readSecret(`Secret for ${args.agent}`), ...omitUndefined({ header: args.header }) }
    const stored = await callDaemon(connection, (client) =>
      client.call('PUT', `${agentPath(args.agent)}/credential`, v.looseObject({ status: v.string() }), { body }),
    )
    if (args.json) printJson(stored)
    else print(`The secret for ${args.agent} is in the vault.`)
    return exits.ok
  },
})
