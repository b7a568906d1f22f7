import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  exits,
  print,
  printJson,
  renderFacts,
  renderTable,
} from 'svc/cli'
import { countRegistered, PluginList, registeredLines } from './client.ts'
import type { Plugin } from './client.ts'

export default defineCommand({
  description:
    'List the plugins, those that are not built in first: state, access, isolation, folder, reloads, what each registered and what is wrong with it.',
  args: {
    long: { type: 'boolean', alias: 'l', description: 'Print routes, tools and hooks by name' },
    ...clientArgs,
  },
  examples: [
    ['svc plugin list', 'every plugin'],
    ['svc plugin list --long', 'with routes, tools and hooks by name'],
    ["svc plugin list --json | jq '.plugins[] | select(.error)'", 'those that failed'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) => client.call('GET', '/api/plugins', PluginList))
    if (args.json) printJson(answer)
    else {
      const plugins = [...answer.plugins.filter(isForeign), ...answer.plugins.filter((one) => !isForeign(one))]
      print(renderPlugins(plugins))
      if (args.long) for (const plugin of plugins) printNames(plugin)
      for (const plugin of plugins) if (plugin.error) print(`\n${plugin.name}: ${plugin.error}`)
    }
    return exits.ok
  },
})

/** There are a hundred that are built in: the others come first. */
const isForeign = ({ source }: Plugin): boolean => source !== 'built-in'

function renderPlugins(plugins: readonly Plugin[]): string {
  return renderTable(
    ['NAME', 'VERSION', 'STATE', 'ACCESS', 'ISOLATION', 'REGISTERED', 'RELOADS', 'FOLDER'],
    plugins.map((plugin) => [
      plugin.name,
      plugin.version,
      plugin.state,
      plugin.access ?? '-',
      plugin.isolation || '-',
      countRegistered(plugin.registered),
      String(plugin.reloads),
      plugin.path ?? plugin.source,
    ]),
  )
}

function printNames({ name, registered }: Plugin): void {
  const lines = registeredLines(registered)
  if (lines.length > 0) print(`\n${name}\n${renderFacts(lines.map(([kind, label]) => [`  ${kind}`, label]))}`)
}
