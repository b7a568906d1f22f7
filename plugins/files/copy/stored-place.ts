import { Refusal } from 'svc/sdk'
import { MAX_FILE_BYTES } from '../schema.ts'
import type { FileStore, StoredFiles } from '../stored/store.ts'
import type { Place } from './place.ts'

/** Workspaces in the database, with their large contents in a bucket or not. */
export class StoredPlace implements Place {
  readonly label: string
  readonly #rows: Pick<StoredFiles, 'agents'>
  readonly #files: FileStore
  constructor(label: string, rows: Pick<StoredFiles, 'agents'>, files: FileStore) {
    this.label = label
    this.#rows = rows
    this.#files = files
  }

  ids(): Promise<readonly string[]> {
    return this.#rows.agents()
  }
  isWhole(agentId: string): Promise<boolean> {
    return this.#files.isMade(agentId)
  }
  async files(agentId: string): ReturnType<Place['files']> {
    const rows = await this.#files.list(agentId)
    return rows.map(({ path, size_bytes: sizeBytes }) => ({ name: path, sizeBytes }))
  }
  async read(agentId: string, name: string): Promise<Uint8Array> {
    const found = await this.#files.read(agentId, name, MAX_FILE_BYTES)
    if (!found?.content) throw new Refusal('file_not_found', `No file "${name}"`)
    return found.content
  }
  async put(agentId: string, name: string, content: Uint8Array): Promise<void> {
    await this.#files.put(agentId, { path: name, content }, new Date().toISOString())
  }
  async remove(agentId: string, name: string): Promise<void> {
    await this.#files.remove(agentId, name)
  }
  async finish(agentId: string): Promise<void> {
    await this.#files.make(agentId, [], new Date().toISOString())
  }
}
