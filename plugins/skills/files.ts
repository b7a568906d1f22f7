import { lstat, readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { openConfined } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { isMissing } from './if-there.ts'
import { TEXT_FILE } from './manifest/front-matter.ts'
import type { Skill } from './manifest/skill.ts'
import { MANIFEST_FILE } from './manifest/toml.ts'
import { withoutUnseen } from './manifest/unseen.ts'

/** Names of files that are shown at most. */
const MAX_LISTED = 200

/** A name in the path begins with a dot: what lies there is no part of what an agent reads. */
const isHidden = (path: string): boolean => /(?:^|\/)\.(?!\.?(?:\/|$))/.test(path)

/** The files of a skill beside those that say what it is, which can be read, relative to its folder and by name. */
export async function listFiles({ folder }: Pick<Skill, 'folder'>): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((name) => name !== TEXT_FILE && name !== MANIFEST_FILE && !isHidden(name))
    .filter((name) => name === withoutUnseen(name) && !/\p{Cc}/u.test(name))
    .toSorted()
    .slice(0, MAX_LISTED)
  // One with a second name may be a file of somebody else, and is not opened.
  const links = await Promise.all(names.map(async (name) => (await lstat(join(folder, name))).nlink))
  return names.filter((_, at) => links[at] === 1)
}

/**
 * A text file in the folder of a skill. Throws `not_found`, `forbidden` for a name that leads out of the folder,
 * `payload_too_large`, and `invalid_request` for what is no text.
 */
export async function readText({ folder, name: skill }: Skill, name: string, maxBytes: number): Promise<string> {
  const missing = (): Refusal =>
    new Refusal('not_found', `The skill "${skill}" has no file "${name}". skill_describe lists its files.`)
  if (isHidden(name)) throw missing()
  let handle: Awaited<ReturnType<typeof openConfined>>
  try {
    handle = await openConfined(folder, name, 'read')
  } catch (error) {
    if (!isMissing(error)) throw error
    throw missing()
  }
  try {
    const { size } = await handle.stat()
    if (size > maxBytes)
      throw new Refusal(
        'payload_too_large',
        `"${name}" has ${size} bytes, more than plugins.skills.read_file_bytes (${maxBytes})`,
      )
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(await handle.readFile())
    } catch (cause) {
      throw new Refusal('invalid_request', `"${name}" is no text: it has ${size} bytes`, { cause })
    }
  } finally {
    await handle.close()
  }
}
