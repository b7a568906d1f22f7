import * as v from 'valibot'
import type { DaemonClient } from 'svc/cli'
import { listAgents } from '../../agents/cli/client.ts'
import { localCommands } from './local-commands.ts'

const Commands = v.looseObject({ commands: v.array(v.looseObject({ cmd: v.string() })) })

/** What a line may become: commands after a slash, and names of agents after /agent. */
export async function completeLine(client: DaemonClient, line: string): Promise<readonly string[]> {
  if (!line.startsWith('/')) return []
  const [, named] = /^\/agent\s+(.*)$/.exec(line) ?? []
  const all =
    named === undefined ? await listCommands(client) : (await listAgents(client)).map(({ name }) => `/agent ${name}`)
  return all.filter((one) => one.startsWith(line))
}

async function listCommands(client: DaemonClient): Promise<readonly string[]> {
  const { commands } = await client.call('GET', '/api/commands?surface=cli', Commands)
  const local = localCommands.map(([usage]) => usage.replace(/ .*/, ''))
  return [...new Set([...commands.map(({ cmd }) => cmd), ...local])].toSorted()
}
