import * as v from 'valibot'
import {
  callDaemon,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
  shorten,
} from 'svc/cli'
import { path } from './server.ts'
import { readSpec, specArgs, START_MS } from './spec.ts'

const Tested = v.looseObject({
  protocol_version: v.string(),
  tools: v.array(v.looseObject({ name: v.string(), description: v.string() })),
})

export default defineCommand({
  description: 'Connect to an MCP server and list its tools without adding it.',
  args: specArgs,
  examples: [['svc mcp test docs --address https://example.com/mcp', 'what it offers']],
  async run(args, words) {
    const connection = await connect(args)
    const body = await readSpec(
      args,
      words,
      `write --command PROGRAM or --address URL; ${commandLine(`mcp restart ${args.name}`)} tries a server that was added`,
    )
    const answer = await callDaemon(connection, (client) =>
      client.call('POST', `${path}/test`, Tested, { body, timeoutMs: START_MS }),
    )
    if (args.json) printJson(answer)
    else {
      print(`It works, with revision ${escapeControls(answer.protocol_version)} and ${answer.tools.length} tools.`)
      const rows = answer.tools.map(({ name, description }) => [
        escapeControls(name),
        shorten(escapeControls(description), 80),
      ])
      if (rows.length > 0) print(renderTable(['TOOL', 'DESCRIPTION'], rows))
    }
    return exits.ok
  },
})
