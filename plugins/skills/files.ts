import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { openConfined } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { TEXT_FILE } from './manifest/front-matter.ts'
import type { Skill } from './manifest/skill.ts'
import { MANIFEST_FILE } from './manifest/toml.ts'

/** Names of files that are shown at most. */
const MAX_LISTED = 200

/** The files of a skill beside those that say what it is, relative to its folder and by name. */
export async function listFiles({ folder }: Pick<Skill, 'folder'>): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((name) => name !== TEXT_FILE && name !== MANIFEST_FILE && !/(?:^|\/)\./.test(name))
    .toSorted()
    .slice(0, MAX_LISTED)
}

/**
 * A text file in the folder of a skill. Throws `not_found`, `forbidden` for a name that leads out of the folder,
 * `payload_too_large`, and `invalid_request` for what is no text.
 */
export async function readText({ folder, name: skill }: Skill, name: string, maxBytes: number): Promise<string> {
  let handle: Awaited<ReturnType<typeof openConfined>>
  try {
    handle = await openConfined(folder, name, 'read')
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
    if (!isMissing) throw error
    throw new Refusal('not_found', `The skill "${skill}" has no file "${name}". skill_describe lists its files.`)
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
