import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { entryPath, openConfined } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import { hasCode } from './disk.ts'
import { isFolder } from './folders.ts'
import { identityFiles } from './identity-files.ts'

interface Place {
  /** The folder of the workspaces. */
  readonly base: string
  /** Of one identity file. */
  readonly identityBytes: number
}

/** Makes a folder with the identity files of an agent, those of the agent it was cloned from if there are any. */
export async function fillFolder(folder: string, agent: Agent, place: Place): Promise<void> {
  await mkdir(folder, { mode: 0o700 })
  if (!agent.manifest.generate_identity_files) return
  await Promise.all(
    [...identityFiles].map(async ([name, text]) => {
      await writeFile(join(folder, name), (await inherited(agent, name, place)) ?? text, { mode: 0o600 })
    }),
  )
}

async function inherited(agent: Agent, name: string, { base, identityBytes }: Place): Promise<Uint8Array | undefined> {
  if (agent.clonedFrom === undefined) return undefined
  const source = entryPath(base, agent.clonedFrom)
  if (!(await isFolder(source))) return undefined
  let handle
  try {
    handle = await openConfined(source, name, 'read')
  } catch (error) {
    // Missing, or not a plain file: there is nothing to keep.
    if (error instanceof Refusal || hasCode(error, 'ENOENT')) return undefined
    throw error
  }
  try {
    return (await handle.stat()).size <= identityBytes ? await handle.readFile() : undefined
  } finally {
    await handle.close()
  }
}
