import { randomUUID } from 'node:crypto'
import { lstat, mkdir, realpath, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { entryPath, removeFolder } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import { diskRefusal, hasCode } from './disk.ts'
import type { FolderWatch } from './mount/watch.ts'

type Watch = Pick<FolderWatch, 'check'>

/** One folder for each agent, named by its id. */
export class Folders {
  readonly #base: string
  /** Throws for a folder no agent may work in. */
  readonly #check: (folder: string) => void
  readonly #watch: Watch | undefined
  readonly #making = new Map<string, Promise<void>>()
  /** Of one identity file. */
  readonly identityBytes: number
  /** `base`: absolute. `watch`: of one that daemons share. */
  constructor(base: string, identityBytes: number, check: (folder: string) => void = () => undefined, watch?: Watch) {
    this.#check = check
    this.#watch = watch
    this.#base = base
    this.identityBytes = identityBytes
  }

  /** Throws `service_unavailable` while the folder that daemons share is not mounted. */
  async checkMounted(): Promise<void> {
    await this.#watch?.check()
  }

  /**
   * The real path of an agent's folder. A missing one is made with its identity files, those of the agent it was cloned
   * from if there are any; so a crash after the spawn costs nothing.
   */
  async open(agent: Agent): Promise<string> {
    const path = entryPath(this.#base, agent.id)
    this.#check(path)
    await this.checkMounted()
    if (!(await isFolder(path))) {
      const making = this.#making.get(agent.id) ?? this.#make(agent, path)
      this.#making.set(agent.id, making)
      try {
        await making
      } finally {
        this.#making.delete(agent.id)
      }
    }
    return realpath(path)
  }

  /** Removes the folder with all it holds, also while a program of the agent still works there. */
  async remove(agentId: string): Promise<void> {
    await this.checkMounted()
    await removeFolder(entryPath(this.#base, agentId))
  }

  async #make(agent: Agent, path: string): Promise<void> {
    // One that is shared is mounted, or it is gone.
    if (!this.#watch) await mkdir(this.#base, { recursive: true, mode: 0o700 })
    const { fillFolder } = await import('./fill-folder.ts')
    // Filled under a temporary name, so that an existing folder is always complete.
    const part = join(this.#base, `.${agent.id}.${randomUUID()}.part`)
    try {
      await fillFolder(part, agent, { base: this.#base, identityBytes: this.identityBytes })
      await rename(part, path)
    } catch (error) {
      await removeFolder(part)
      await this.checkMounted()
      if (!(await isFolder(path))) throw diskRefusal(error) ?? error
    }
  }
}

export async function isFolder(path: string): Promise<boolean> {
  try {
    const found = await lstat(path)
    if (!found.isDirectory()) throw new Refusal('forbidden', 'The workspace is not a folder')
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}
