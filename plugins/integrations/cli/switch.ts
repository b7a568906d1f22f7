import * as v from 'valibot'
import { callDaemon, connect, exits, print, printJson } from 'svc/cli'
import { pathOf } from './client.ts'

interface SwitchArgs {
  readonly id: string
  readonly json?: boolean | undefined
}

/** Switches the MCP server of an integration on or off. It has the same name. */
export async function switchIntegration(args: SwitchArgs & Parameters<typeof connect>[0], enabled: boolean) {
  const answer = await callDaemon(await connect(args), async (client) => {
    const { id } = await client.call('GET', pathOf(args.id), v.looseObject({ id: v.string() }))
    const path = `/api/mcp/servers/${encodeURIComponent(id)}`
    return await client.call('PUT', path, v.looseObject({ name: v.string() }), { body: { enabled } })
  })
  if (args.json) printJson(answer)
  else if (enabled) print(`${answer.name} is on again.`)
  else print(`${answer.name} is off. Agents cannot use it; its secrets stay.`)
  return exits.ok
}
