import { readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import * as v from 'valibot'
import type { DaemonClient } from 'svc/cli'
import { listAgents } from '../../agents/cli/client.ts'
import { localCommands } from './local-commands.ts'

const Commands = v.looseObject({ commands: v.array(v.looseObject({ cmd: v.string() })) })
/** More than fits on a screen is no help. */
const MAX_PATHS = 200

/**
 * What a line may become: commands after a slash, names of agents after /agent, and elsewhere paths of this machine,
 * where the last word has a slash.
 */
export async function completeLine(client: DaemonClient, line: string): Promise<readonly string[]> {
  const [, named] = /^\/agent\s+(.*)$/.exec(line) ?? []
  if (named !== undefined) return beginningWith(line, await listAgentLines(client))
  const commands = line.startsWith('/') ? beginningWith(line, await listCommands(client)) : []
  return commands.length > 0 ? commands : await completePath(line)
}

const beginningWith = (line: string, all: readonly string[]): readonly string[] =>
  all.filter((one) => one.startsWith(line))

async function listAgentLines(client: DaemonClient): Promise<readonly string[]> {
  return (await listAgents(client)).map(({ name }) => `/agent ${name}`)
}

async function listCommands(client: DaemonClient): Promise<readonly string[]> {
  const { commands } = await client.call('GET', '/api/commands?surface=cli', Commands)
  const local = localCommands.map(([usage]) => usage.replace(/ .*/, ''))
  return [...new Set([...commands.map(({ cmd }) => cmd), ...local])].toSorted()
}

async function completePath(line: string): Promise<readonly string[]> {
  const typed = /\S*\/\S*$/.exec(line)?.[0]
  if (typed === undefined) return []
  const path = typed.replace(/^~(?=\/)/, homedir())
  const start = path.endsWith('/') ? '' : basename(path)
  const before = line.slice(0, line.length - start.length)
  const names = await listNames(path.endsWith('/') ? path : dirname(path), start)
  return names.map((name) => before + name).slice(0, MAX_PATHS)
}

/** What is in a folder and begins like this; folders end with a slash. A word that is no path of a folder has none. */
async function listNames(folder: string, start: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(join(folder), { withFileTypes: true })
    return entries
      .filter(({ name }) => name.startsWith(start) && (start !== '' || !name.startsWith('.')) && !/\s/.test(name))
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .toSorted()
  } catch (error) {
    if (error instanceof Error && 'code' in error) return []
    throw error
  }
}
