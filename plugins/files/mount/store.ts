import type { PluginDatabase } from 'svc/sdk'

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
}
