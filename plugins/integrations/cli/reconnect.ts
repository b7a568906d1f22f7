import * as v from 'valibot'
import {
  callDaemon,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  print,
  printJson,
} from 'svc/cli'
import { integrationArgs, pathOf } from './client.ts'

const Reconnected = v.looseObject({
  id: v.string(),
  status: v.string(),
  tool_count: v.number(),
  error: v.nullable(v.string()),
})

export default defineCommand({
  description: 'End the MCP server of an integration and connect again.',
  args: integrationArgs,
  examples: [['svc integration reconnect github', 'also after it was given up']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', `${pathOf(args.id)}/reconnect`, Reconnected),
    )
    if (args.json) printJson(answer)
    else if (answer.status === 'login_required')
      print(`Sign in to use ${answer.id}: ${commandLine(`mcp login ${answer.id}`)}`)
    else if (answer.status !== 'connected')
      throw new Failure(exits.failed, `${answer.id} is ${answer.status}`, escapeControls(answer.error ?? 'see the log'))
    else print(`${answer.id} is connected and has ${answer.tool_count} tools.`)
    return exits.ok
  },
})
