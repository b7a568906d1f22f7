import * as v from 'valibot'
import { clientArgs, defineCommand } from './command.ts'
import { callDaemon, connect } from './connect.ts'
import { exits } from './failure.ts'
import { print, printJson, renderTable } from './output.ts'

const Plugin = v.looseObject({
  name: v.string(),
  display_name: v.optional(v.string(), ''),
  version: v.string(),
  state: v.string(),
  source: v.optional(v.string(), ''),
  enabled: v.optional(v.boolean(), true),
  requires: v.optional(v.array(v.string()), []),
  provides: v.optional(v.array(v.string()), []),
  ledger_size: v.optional(v.number(), 0),
  reloads: v.optional(v.number(), 0),
  error: v.nullish(v.string()),
})

export default defineCommand({
  description: 'List the plugins, their state and what is wrong with those that failed.',
  args: clientArgs,
  examples: [
    ['svc plugin list', 'every plugin'],
    ["svc plugin list --json | jq '.plugins[] | select(.error)'", 'those that failed'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('GET', '/api/plugins', v.looseObject({ plugins: v.array(Plugin), total: v.number() })),
    )
    if (args.json) printJson(answer)
    else {
      print(
        renderTable(
          ['NAME', 'VERSION', 'STATE', 'OWNS', 'RELOADS', 'SOURCE'],
          answer.plugins.map((plugin) => [
            plugin.name,
            plugin.version,
            plugin.state,
            String(plugin.ledger_size),
            String(plugin.reloads),
            plugin.source,
          ]),
        ),
      )
      for (const plugin of answer.plugins) if (plugin.error) print(`\n${plugin.name}: ${plugin.error}`)
    }
    return exits.ok
  },
})
