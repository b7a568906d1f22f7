import { createHash } from 'node:crypto'
import { MAX_FILE_BYTES } from '../schema.ts'
import type { FileStore, StoredFiles } from '../stored/store.ts'

export interface MoveContentsDeps {
  readonly rows: Pick<StoredFiles, 'placed'>
  /** Reads from wherever a content lies, and writes to where it is to lie. */
  readonly files: FileStore
  /** The smallest content that belongs into the bucket; `undefined`: none does. */
  readonly minObjectBytes: number | undefined
  /** Ids of the agents that there are. */
  readonly agents: readonly string[]
  readonly dry_run: boolean
}

/**
 * Moves contents of files between the database and the bucket; the rows stay the same, so there is nothing to collide
 * with. Each is read again before the next one. What was in the bucket is deleted there as any content that is replaced.
 */
export async function moveContents(deps: MoveContentsDeps) {
  const { agents, dry_run: isDry, files, minObjectBytes, rows } = deps
  const moved = { agents: 0, files: 0, bytes: 0, same: 0 }
  for (const id of agents) {
    const placed = await rows.placed(id)
    if (placed.length > 0) moved.agents++
    for (const { path, size_bytes: size, modified_at: at, object_key: key } of placed) {
      const belongsInBucket = minObjectBytes !== undefined && size > 0 && size >= minObjectBytes
      // What is small enough for the database by now stays where it is.
      if (minObjectBytes === undefined ? key === null : !belongsInBucket || key !== null) {
        moved.same++
        continue
      }
      moved.files++
      moved.bytes += size
      if (isDry) continue
      const content = await read(files, id, path)
      await files.put(id, { path, content }, at)
      if (hashOf(await read(files, id, path)) !== hashOf(content))
        throw new Error(`"${path}" of agent ${id} is not what was written a moment ago`)
    }
  }
  return moved
}

async function read(files: FileStore, agentId: string, path: string): Promise<Uint8Array> {
  const found = await files.read(agentId, path, MAX_FILE_BYTES)
  if (!found?.content) throw new Error(`"${path}" of agent ${agentId} cannot be read: a daemon changed it meanwhile`)
  return found.content
}
const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex')
