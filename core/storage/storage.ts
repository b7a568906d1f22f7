import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createStorage } from 'unstorage'
import type { Driver, Storage } from 'unstorage'
import fsLiteDriver from 'unstorage/drivers/fs-lite'
import type { Database, PluginDatabase } from './database.ts'

/** Key-value storage and folders, one of each per plugin. Disposing ends the mounts, never the database. */
export interface PluginStorage extends AsyncDisposable {
  /** Rows of the plugin's own; keys of others cannot be named. Durable before it settles. */
  forPlugin(name: string): Storage
  /** The plugin's folder of files. Keys that come from outside go through `confine` first. */
  files(name: string): Storage
}

export function openStorage(database: Database, filesDir: string): PluginStorage {
  const mounts = new Map<string, Storage>()
  const mount = (id: string, driver: () => Driver): Storage => {
    let storage = mounts.get(id)
    if (!storage) mounts.set(id, (storage = clearable(createStorage({ driver: driver() }))))
    return storage
  }
  return {
    forPlugin: (name) => mount(`rows ${checked(name)}`, () => rowsDriver(database.sql, name)),
    files: (name) =>
      mount(`files ${checked(name)}`, () => {
        const base = join(filesDir, name)
        mkdirSync(base, { recursive: true, mode: 0o700 })
        return fsLiteDriver({ base })
      }),
    async [Symbol.asyncDispose]() {
      for (const storage of mounts.values()) await storage.dispose()
      mounts.clear()
    },
  }
}

/** Left alone, unstorage clears whole mounts only and ignores a base below one without a word. */
function clearable(storage: Storage): Storage {
  storage.clear = async (base) => {
    for (const key of await storage.getKeys(base)) await storage.removeItem(key)
  }
  return storage
}

function checked(name: string): string {
  if (!/^[a-z0-9][a-z0-9-]*$/.test(name)) throw new Error(`"${name}" is not a plugin's name`)
  return name
}

const toBytes = (value: unknown): Uint8Array | undefined =>
  value instanceof Uint8Array ? value : value instanceof ArrayBuffer ? new Uint8Array(value) : undefined

/**
 * An unstorage driver over the table `core_storage`. Text and bytes have a column each, so that both engines keep
 * them as they are.
 */
function rowsDriver(db: PluginDatabase, plugin: string): Driver {
  async function put(key: string, value: unknown): Promise<void> {
    const bytes = toBytes(value) ?? null
    const text = bytes ? null : typeof value === 'string' ? value : JSON.stringify(value)
    await db.run`INSERT INTO core_storage (plugin, key, text, bytes, changed_at)
      VALUES (${plugin}, ${key}, ${text}, ${bytes}, ${new Date().toISOString()})
      ON CONFLICT (plugin, key)
      DO UPDATE SET text = excluded.text, bytes = excluded.bytes, changed_at = excluded.changed_at`
  }
  const find = (key: string): Promise<{ text: string | null; bytes: Uint8Array | null } | undefined> =>
    db.one`SELECT text, bytes FROM core_storage WHERE plugin = ${plugin} AND key = ${key}`
  return {
    name: 'svc-rows',
    async hasItem(key) {
      return (await find(key)) !== undefined
    },
    async getItem(key) {
      const row = await find(key)
      return row ? (row.text ?? (row.bytes ? Buffer.from(row.bytes).toString('utf8') : null)) : null
    },
    async getItemRaw(key) {
      const row = await find(key)
      return row ? (row.bytes ?? row.text) : null
    },
    setItem: put,
    setItemRaw: put,
    async removeItem(key) {
      await db.run`DELETE FROM core_storage WHERE plugin = ${plugin} AND key = ${key}`
    },
    async getMeta(key) {
      const row = await db.one<{
        changed_at: string
      }>`SELECT changed_at FROM core_storage WHERE plugin = ${plugin} AND key = ${key}`
      return row ? { mtime: new Date(row.changed_at) } : null
    },
    async getKeys(base = '') {
      const rows = await db.all<{
        key: string
      }>`SELECT key FROM core_storage
        WHERE plugin = ${plugin} AND substr(key, 1, ${charsOf(base)}) = ${base} ORDER BY key`
      return rows.map((row) => row.key)
    },
  }
}
// Both engines count characters, not UTF-16 units.
const charsOf = (text: string): number => [...text].length
