import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson, renderFacts } from 'svc/cli'
import { PluginDetail, registeredLines } from './client.ts'

export default defineCommand({
  description:
    'Show one plugin: folder, state, last error, access, isolation, configuration and everything it registered, by name.',
  args: { plugin: { type: 'positional', required: true, description: 'Name of the plugin' }, ...clientArgs },
  examples: [['svc plugin info hello', 'what it registered, and what is wrong with it']],
  async run(args) {
    const plugin = await callDaemon(await connect(args), (client) =>
      client.call('GET', `/api/plugins/${encodeURIComponent(args.plugin)}`, PluginDetail),
    )
    if (args.json) {
      printJson(plugin)
      return exits.ok
    }
    print(
      renderFacts([
        ['name', plugin.name],
        ['version', plugin.version],
        ['state', plugin.state],
        ['folder', plugin.path ?? plugin.source],
        ['reloads', String(plugin.reloads)],
        ['error', plugin.error ?? '-'],
        ['access', plugin.access ?? '-'],
        ['isolation', plugin.isolation || '-'],
        ['permissions', plugin.permissions.join(', ') || '-'],
        ['requires', plugin.requires.join(', ') || '-'],
        ['provides', plugin.provides.join(', ') || '-'],
        ['configuration', `[${plugin.config_section}] ${JSON.stringify(plugin.config)}`],
        ...registeredLines(plugin.registered),
      ]),
    )
    return exits.ok
  },
})
