import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { confine, readArchive } from 'svc/internal'
import type { ArchiveLimits } from 'svc/internal'
import { Refusal } from 'svc/sdk'

/**
 * Unpacks an archive into an empty folder: see `readArchive`, which throws before anything is written. `claim` is told
 * the bytes, and throws if they are too many.
 */
export async function unpack(
  archive: Uint8Array,
  folder: string,
  limits: ArchiveLimits,
  claim?: (bytes: number) => void,
): Promise<void> {
  for (const { name, bytes } of await readArchive(archive, limits, claim)) {
    // Checked against the disk for each file: nothing in the archive can make a link that a later file goes through.
    const path = await confine(folder, name)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, bytes, { flag: 'wx', mode: 0o600 }).catch((cause: unknown) => {
      throw new Refusal('invalid_request', `The archive has the file "${name}" twice, or as file and folder`, { cause })
    })
  }
}
