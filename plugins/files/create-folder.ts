import { Refusal } from 'svc/sdk'
import type { AgentFiles } from './agent-files.ts'
import { hasCode } from './disk.ts'

/** A folder in the workspace of an agent, for its tool; the answer. */
export async function createFolder(files: AgentFiles, agentId: string, path: string): Promise<string> {
  const name = await files.fileIn(agentId, path)
  await files.workspaces.check(agentId, name)
  if (!files.workspaces.isFolder) return `"${name}" is made with the first file in it.`
  const made = await files.workspaces
    .within(agentId, name, (_, isNew) => Promise.resolve(isNew), { make: true })
    .catch((error: unknown) => {
      if (hasCode(error, 'EEXIST', 'ENOTDIR'))
        throw new Refusal('conflict', `"${name}" or a part of it is a file`, { cause: error })
      throw error
    })
  if (made) await files.recordChange(agentId, `created folder "${name}"`)
  return made ? `Created folder "${name}".` : `"${name}" is there already.`
}
