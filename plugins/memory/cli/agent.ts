import * as v from 'valibot'
import { commandLine, exits, Failure } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const Agents = v.array(v.looseObject({ id: v.string(), name: v.string() }))

/** The id of an agent by its name or id. Throws a `Failure`. */
export async function agentIdOf(client: DaemonClient, text: string): Promise<string> {
  const agents = await client.call('GET', '/api/agents', Agents)
  const found = agents.find(({ id, name }) => name === text || id === text.toLowerCase())
  if (found) return found.id
  throw new Failure(exits.notFound, `there is no agent "${text}"`, `${commandLine('agent list')} shows those there are`)
}

/** The name of an agent by its id, which is the answer for one that is gone. */
export async function agentNameOf(client: DaemonClient, agentId: string): Promise<string> {
  const agents = await client.call('GET', '/api/agents', Agents)
  return agents.find(({ id }) => id === agentId)?.name ?? agentId
}

/** What became of a file, in words. */
export function fileFailure(file: string, error: unknown): Failure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ENOENT') return new Failure(exits.notFound, `there is no file ${file}`, 'name one that is there')
  if (code === 'EEXIST') return new Failure(exits.failed, `${file} is there already`, 'name another file')
  return new Failure(exits.failed, `${file}: ${error instanceof Error ? error.message : String(error)}`, '')
}
