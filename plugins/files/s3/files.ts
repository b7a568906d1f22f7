import { createHash, randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { FileStore, FoundFile, NewFile, StoredChange, StoredFiles } from '../stored/store.ts'
import type { Bucket } from './bucket.ts'
import type { ObjectStore } from './store.ts'

export interface BucketFilesDeps {
  readonly rows: StoredFiles
  readonly objects: ObjectStore
  readonly bucket: Pick<Bucket, 'get' | 'put' | 'remove'>
  /** Smaller contents stay in the row; with `Infinity` all do, and the bucket is only read. */
  readonly minObjectBytes: number
  readonly now: () => Date
}

/** How often a file that is replaced while it is read is looked up again. */
const MAX_LOOKS = 5

/**
 * Files of workspaces whose rows lie in the database and whose contents lie in a bucket. An object is named by the
 * SHA-256 of its content and an id of its own: a name that is used once cannot be deleted late, by a request that was
 * repeated or held up, after somebody wrote the same content again. Its name is in `files_object` before it is sent and
 * in the row of the file after it is there, so a crash leaves at most an object that no file names.
 */
export class BucketFiles implements FileStore {
  readonly #deps: BucketFilesDeps
  constructor(deps: BucketFilesDeps) {
    this.#deps = deps
  }

  isMade(agentId: string): Promise<boolean> {
    return this.#deps.rows.isMade(agentId)
  }
  list(agentId: string): ReturnType<FileStore['list']> {
    return this.#deps.rows.list(agentId)
  }
  remove(agentId: string, path: string): Promise<boolean> {
    return this.#deps.rows.remove(agentId, path)
  }
  removeAll(agentId: string): Promise<void> {
    return this.#deps.rows.removeAll(agentId)
  }

  async make(agentId: string, files: readonly NewFile[], at: string): Promise<void> {
    const made: NewFile[] = []
    for (const file of files) made.push(await this.#send(file))
    await this.#deps.rows.make(agentId, made, at)
  }
  async change(agentId: string, changes: readonly StoredChange[], at: string): Promise<void> {
    const sent: StoredChange[] = []
    for (const change of changes) sent.push({ ...change, after: change.after && (await this.#send(change.after)) })
    await this.#deps.rows.change(agentId, sent, at)
  }
  async put(agentId: string, file: NewFile, at: string): Promise<void> {
    const { objects, rows } = this.#deps
    const sent = await this.#send(file)
    try {
      await rows.put(agentId, sent, at)
    } catch (error) {
      if (sent.objectKey === undefined || (await objects.isUsable(sent.objectKey))) throw error
      throw new Refusal('conflict', `Writing "${file.path}" took more than a day: write it again`, { cause: error })
    }
  }

  async read(agentId: string, path: string, maxBytes: number): Promise<FoundFile | undefined> {
    const { rows, bucket } = this.#deps
    for (let look = 1; look <= MAX_LOOKS; look++) {
      const found = await rows.find(agentId, path, maxBytes)
      if (!found || found.object_key === null || found.size_bytes > maxBytes) return found
      const content = await bucket.get(found.object_key, found.size_bytes)
      // What was cut on its way comes whole with the next request.
      if (content && look === 1 && !isWhole(found.object_key, content)) continue
      if (content) return { ...found, content: checked(path, found.object_key, content) }
      // Replaced meanwhile, and its object swept: then the row names another one.
      if ((await rows.find(agentId, path, maxBytes))?.object_key === found.object_key)
        throw new Refusal(
          'service_unavailable',
          `The content of "${path}" is missing in the bucket: restore the object ${found.object_key}, or write the file again`,
        )
    }
    throw new Refusal('conflict', `"${path}" is replaced again and again: try again`)
  }

  /** The row of a file whose content lies in the bucket by then, unless it is small. */
  async #send(file: NewFile): Promise<NewFile> {
    const { bucket, minObjectBytes, now, objects } = this.#deps
    const { content, path } = file
    if (content.byteLength === 0 || content.byteLength < minObjectBytes) return file
    const key = `${hashOf(content)}/${randomUUID()}`
    await objects.announce(key, content.byteLength, now().toISOString())
    await bucket.put(key, content)
    return { path, content: new Uint8Array(), objectKey: key }
  }
}

function checked(path: string, key: string, content: Uint8Array): Uint8Array {
  if (isWhole(key, content)) return content
  throw new Refusal(
    'service_unavailable',
    `The content of "${path}" in the bucket is not what was written: restore the object ${key}, or write the file again`,
  )
}
const isWhole = (key: string, content: Uint8Array): boolean => hashOf(content) === key.split('/')[0]
const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex')
