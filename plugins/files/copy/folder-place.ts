import { mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { entryPath, openConfined, removeConfined, replaceConfined, syncFolder } from 'svc/internal'
import { accessRefusal, hasCode, whenMissing } from '../disk.ts'
import { isFolder } from '../folders.ts'
import { listFiles } from '../folder-list.ts'
import { Refusal } from 'svc/sdk'
import type { Place } from './place.ts'

/** Workspaces that are folders. A copy is made in a folder that nobody takes for one, and renamed when it is whole. */
export class FolderPlace implements Place {
  readonly label: string
  readonly #base: string
  constructor(base: string) {
    this.#base = base
    this.label = `the folder ${base}`
  }

  async ids(): Promise<readonly string[]> {
    const names = (await readdir(this.#base).catch(whenMissing)) ?? []
    return names.filter((name) => !name.startsWith('.'))
  }
  isWhole(agentId: string): Promise<boolean> {
    return isFolder(entryPath(this.#base, agentId))
  }
  async files(agentId: string): ReturnType<Place['files']> {
    const root = await this.#root(agentId)
    return (await isFolder(root)) ? await listFiles(root, undefined, Number.MAX_SAFE_INTEGER) : []
  }
  async read(agentId: string, name: string): Promise<Uint8Array> {
    const handle = await openConfined(await this.#root(agentId), name, 'read').catch((error: unknown) => {
      if (hasCode(error, 'ENOENT', 'ENOTDIR'))
        throw new Refusal('file_not_found', `No file "${name}"`, { cause: error })
      throw accessRefusal(name, error) ?? error
    })
    try {
      return await handle.readFile()
    } finally {
      await handle.close()
    }
  }
  async put(agentId: string, name: string, content: Uint8Array): Promise<void> {
    await replaceConfined(await this.#made(agentId), name, content)
  }
  async remove(agentId: string, name: string): Promise<void> {
    await removeConfined(await this.#root(agentId), name)
  }
  async finish(agentId: string): Promise<void> {
    if (await this.isWhole(agentId)) return
    await rename(await this.#made(agentId), entryPath(this.#base, agentId))
    await syncFolder(this.#base)
  }

  /** The workspace, or what there is of its copy. */
  async #root(agentId: string): Promise<string> {
    return (await this.isWhole(agentId)) ? entryPath(this.#base, agentId) : join(this.#base, `.${agentId}.copy`)
  }
  async #made(agentId: string): Promise<string> {
    const root = await this.#root(agentId)
    await mkdir(root, { recursive: true, mode: 0o700 })
    return root
  }
}
