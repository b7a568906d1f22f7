import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { withProof } from './proof.ts'

export default defineCommand({
  description: 'Unload a plugin and remove its files. Running calls end first; its tables and stored values stay.',
  args: {
    plugin: { type: 'positional', required: true, description: 'Name of the plugin' },
    force: { type: 'boolean', description: 'Also when other plugins need it' },
    ...clientArgs,
  },
  examples: [['svc plugin remove weather', 'while the daemon serves']],
  async run(args) {
    const connection = await connect(args)
    const answer = await callDaemon(connection, (client) =>
      withProof(connection, (proof) =>
        client.call('POST', '/api/plugins/uninstall', v.looseObject({ removed: v.boolean() }), {
          body: { name: args.plugin, force: args.force ?? false, ...proof },
          timeoutMs: 120_000,
        }),
      ),
    )
    if (args.json) printJson(answer)
    else print(`plugin "${args.plugin}" removed`)
    return exits.ok
  },
})
