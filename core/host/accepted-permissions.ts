import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import * as v from 'valibot'
import { readOwnJson } from '../schema/nesting.ts'
import { SerialQueue } from '../scope/queue.ts'
import { defineService } from './define.ts'
import { PluginProblem } from './definition.ts'

/**
 * What the operator accepted for installed plugins, by folder. A folder with an entry is an installed plugin: it loads
 * only if everything it declares is accepted, and what it does not declare is refused.
 */
export interface AcceptedPermissions {
  /** `undefined` for a folder that was not installed, such as a plugin the operator wrote. */
  of(folder: string): readonly string[] | undefined
  /** Durable before it settles. The plugin in the folder is loaded with these from now on. */
  accept(folder: string, permissions: readonly string[]): Promise<void>
  /** Durable before it settles. For a plugin that was removed. */
  forget(folder: string): Promise<void>
}
export const AcceptedPermissions = defineService<AcceptedPermissions>()('accepted-permissions')

const FILE = 'accepted-permissions.json'
const Entries = v.record(v.string(), v.array(v.string()))

/** Keeps them in a file of the home, because plugins are loaded before any of them could answer. */
export function openAcceptedPermissions(home: string): AcceptedPermissions {
  const path = join(home, FILE)
  const writes = new SerialQueue()
  // Relative to the home, so that they hold where the home is moved or restored to.
  const keyOf = (folder: string): string => relative(home, resolve(folder))
  const change = (edit: (entries: Record<string, readonly string[]>) => void): Promise<void> =>
    writes.run(async () => {
      const entries: Record<string, readonly string[]> = readEntries(path)
      edit(entries)
      const { replaceConfined } = await import('../files/replace.ts')
      await replaceConfined(home, FILE, `${JSON.stringify(entries, undefined, 2)}\n`)
    })
  return {
    of: (folder) => readEntries(path)[keyOf(folder)],
    accept: (folder, permissions) =>
      change((entries) => {
        entries[keyOf(folder)] = [...new Set(permissions)].sort()
      }),
    forget: (folder) =>
      change((entries) => {
        delete entries[keyOf(folder)]
      }),
  }
}

/** Throws if the file cannot be read: then nothing is known to be accepted. */
function readEntries(path: string): Record<string, string[]> {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    throw new PluginProblem(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
  const found = parseEntries(text)
  const parsed = v.safeParse(Entries, found)
  if (!parsed.success || Array.isArray(found))
    throw new PluginProblem(`${path} is damaged: restore it, or install the plugins again`)
  return Object.assign(Object.create(null) as Record<string, string[]>, parsed.output)
}
function parseEntries(text: string): unknown {
  try {
    return readOwnJson(text)
  } catch {
    return undefined /* damaged, which the caller reports */
  }
}
