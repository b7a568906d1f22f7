import type { PluginDatabase } from 'svc/sdk'

/** Of a folder, as opposed to the database or a bucket; also of one that a daemon misses. */
export const FOLDER_ID = /^(?:missing )?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** On which files the daemons of a database work: every statement on `files_mount`. */
export class MountStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async put(home: string, mount: string): Promise<void> {
    await this.#db.run`INSERT INTO files_mount (home, mount) VALUES (${home}, ${mount})
      ON CONFLICT (home) DO UPDATE SET mount = excluded.mount`
  }
  /** Of all homes that ever were here. */
  async mounts(): Promise<readonly string[]> {
    const rows = await this.#db.all<{ readonly mount: string }>`SELECT DISTINCT mount FROM files_mount`
    return rows.map(({ mount }) => mount)
  }
  /** Ids of the homes that have another one. */
  async others(mount: string): Promise<readonly string[]> {
    const rows = await this.#db.all<{ readonly home: string }>`SELECT home FROM files_mount WHERE mount <> ${mount}`
    return rows.map(({ home }) => home)
  }
  /** Of all homes but one, each once; a folder also when its daemon misses it. */
  async ofOthers(home: string): Promise<readonly string[]> {
    const rows = await this.#db.all<{ readonly mount: string }>`SELECT DISTINCT mount FROM files_mount
      WHERE home <> ${home} ORDER BY mount`
    return [...new Set(rows.map(({ mount }) => mount.replace(/^missing /, '')))]
  }
  /** Whether a daemon with this plugin was ever on the database, which has to be PostgreSQL. */
  async isThere(): Promise<boolean> {
    const found = await this.#db.one<{ readonly found: unknown }>`SELECT to_regclass('files_mount') AS found`
    return found?.found != null
  }
}
