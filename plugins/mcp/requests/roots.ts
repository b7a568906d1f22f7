import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Workspaces } from '../../files/contract.ts'
import type { ServerRequest } from '../connection/features.ts'
import type { McpObject } from '../contract.ts'

/** The workspace of the agent whose calls run; none while calls of several agents do, or no call. */
export async function listRoots(workspaces: Workspaces | undefined, { calls }: ServerRequest): Promise<McpObject> {
  const [caller] = calls
  if (!workspaces?.isFolder || !caller || calls.some(({ agentId }) => agentId !== caller.agentId)) return { roots: [] }
  const folder = await workspaces.root(caller.agentId)
  return { roots: [{ uri: pathToFileURL(folder).href, name: `workspace of ${caller.agentName || basename(folder)}` }] }
}
