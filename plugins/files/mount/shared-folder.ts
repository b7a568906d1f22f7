import { randomUUID } from 'node:crypto'
import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from 'svc/internal'
import { hasCode } from '../disk.ts'
import { FOLDER_ID } from './store.ts'
import type { MountStore } from './store.ts'

const KEY = 'plugins.files.path'
/**
 * Whether a folder can be the one of all daemons: it is there and can be written to, a file in it can be replaced at
 * once, and it is not the empty folder below a mount that is missing. Throws with what to do otherwise.
 */
export async function checkSharedFolder(
  folder: string,
  marker: string,
  store: Pick<MountStore, 'mounts'>,
): Promise<void> {
  const found = await stat(folder).catch((error: unknown) => {
    throw new Error(`${KEY}: ${folder} cannot be used (${messageOf(error)}): mount it, or create it`, { cause: error })
  })
  if (!found.isDirectory()) throw new Error(`${KEY}: ${folder} is no folder`)
  await tryReplacing(folder)
  if (!(await isMissing(marker))) return
  if ((await store.mounts()).some((mount) => FOLDER_ID.test(mount)))
    throw new Error(
      `${KEY}: ${folder} has no file .mount, and there was one in the folder that daemons on this database had: ` +
        'mount that one here, or copy all of it. ' +
        `To begin with an empty folder on purpose: uuidgen > ${marker}`,
    )
}

/** As every write of a file does, but for its name. */
async function tryReplacing(folder: string): Promise<void> {
  const id = randomUUID()
  const target = join(folder, `.${id}.check`)
  const part = join(folder, `.${id}.part`)
  try {
    for (const content of ['before', 'after']) {
      const file = await open(part, 'wx', 0o600)
      try {
        await file.writeFile(content)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(part, target)
    }
    if ((await readFile(target, 'utf8')) !== 'after') throw new Error('a file that was replaced has its old content')
  } catch (error) {
    throw new Error(`${KEY}: files in ${folder} cannot be written and replaced (${messageOf(error)})`, { cause: error })
  } finally {
    for (const path of [part, target]) await rm(path, { force: true })
  }
}

async function isMissing(path: string): Promise<boolean> {
  try {
    await stat(path)
    return false
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return true
    throw error
  }
}
