import * as v from 'valibot'
import { callDaemon, connect, defineCommand, escapeControls, exits, note, print, printJson } from 'svc/cli'
import { pathOf, serverArgs } from './server.ts'

const Log = v.looseObject({ log: v.string(), dropped: v.number() })

export default defineCommand({
  description: 'Print what an MCP server wrote to standard error, and what happened to it.',
  args: serverArgs,
  examples: [['svc mcp logs files', 'why it does not start']],
  async run(args) {
    const { log, dropped } = await callDaemon(await connect(args), (client) =>
      client.call('GET', `${pathOf(args.name)}/log`, Log),
    )
    if (args.json) printJson({ log, dropped })
    else {
      if (dropped > 0) note(`${dropped} earlier characters were dropped (plugins.mcp.log_bytes)`)
      if (log !== '') print(escapeControls(log.trimEnd(), true))
    }
    return exits.ok
  },
})
