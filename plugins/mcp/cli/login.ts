import { setTimeout as pause } from 'node:timers/promises'
import * as v from 'valibot'
import {
  callDaemon,
  commandLine,
  connect,
  defineCommand,
  exits,
  Failure,
  note,
  openBrowser,
  print,
  printJson,
} from 'svc/cli'
import type { Connection } from 'svc/cli'
import { pathOf, Server, serverArgs } from './server.ts'

const POLL_MS = 1000
const Login = v.looseObject({
  status: v.string(),
  authorization_url: v.nullable(v.string()),
  expires_at: v.nullable(v.string()),
})

export default defineCommand({
  description: 'Log in at an MCP server: prints the page to open in a browser, and waits until the login is done.',
  args: {
    ...serverArgs,
    open: { type: 'boolean', description: 'Open the page in a browser; prints its address where there is none' },
    wait: { type: 'boolean', default: true, description: 'Wait until the login is done; --no-wait does not' },
  },
  examples: [
    ['svc mcp login docs', 'open the address that it prints'],
    ['svc mcp login docs --open', 'on a desktop'],
    ['svc mcp login docs --no-wait', 'for a script'],
  ],
  async run(args) {
    const connection = await connect(args)
    const { since } = await readState(connection, args.name)
    const login = await callDaemon(connection, (client) => client.call('POST', `${pathOf(args.name)}/login`, Login))
    if (login.authorization_url !== null) {
      const isOpen = args.open === true && (await openBrowser(login.authorization_url))
      if (args.json) printJson(login)
      else print(`${isOpen ? 'The login is open' : 'Open this address'} in a browser:\n${login.authorization_url}`)
      if (!args.wait) return exits.ok
      if (!args.json) note('Waiting for the login …')
      await waitForLogin(connection, args.name, { since, until: Date.parse(login.expires_at ?? '') })
    } else if (args.json) printJson(login)
    if (!args.json) print(`Logged in at ${args.name}.`)
    return exits.ok
  },
})

async function readState(connection: Connection, name: string) {
  const server = await callDaemon(connection, (client) => client.call('GET', pathOf(name), Server))
  return { state: server.state, error: server.error, since: server.connected_since }
}

/** A login that is done connects the server anew. */
async function waitForLogin(
  connection: Connection,
  name: string,
  { since, until }: { readonly since: string | null; readonly until: number },
): Promise<void> {
  while (!(Date.now() > until)) {
    const now = await readState(connection, name)
    if (now.state === 'connected' && now.since !== since) return
    if (now.state === 'error')
      throw new Failure(exits.failed, `${name} does not work after the login: ${now.error ?? ''}`, logsOf(name))
    await pause(POLL_MS)
  }
  throw new Failure(exits.failed, 'nobody logged in in time', `begin again: ${commandLine(`mcp login ${name}`)}`)
}
const logsOf = (name: string): string => `${commandLine(`mcp logs ${name}`)} says more`
