import * as v from 'valibot'
import { readOwnJson, RowReader } from 'svc/internal'
import type { ArchivedFile, SharedFolder, SharedFolderStore } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

const Row = v.object({
  name: v.string(),
  revision: v.string(),
  state: v.picklist(['installed', 'removed']),
  version: v.string(),
  source: v.string(),
  sha256: v.string(),
  signed_by: v.nullable(v.string()),
  permissions: v.pipe(v.string(), v.transform(readOwnJson), v.array(v.string())),
  files_sha256: v.string(),
  mac: v.string(),
  updated_at: v.string(),
})
/** A skill that was installed, or removed since. */
export type InstalledSkill = v.InferOutput<typeof Row>
export type SkillColumns = Omit<InstalledSkill, keyof SharedFolder>

/** Every statement of this plugin. */
export class InstallStore implements SharedFolderStore<SkillColumns> {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof Row>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'skills_installed', key: ['name'], schema: Row, log })
  }

  async all(): Promise<readonly InstalledSkill[]> {
    return this.#rows.all(await this.#db.all`SELECT * FROM skills_installed ORDER BY name`)
  }
  async find(name: string): Promise<InstalledSkill | undefined> {
    const row = await this.#db.one`SELECT * FROM skills_installed WHERE name = ${name}`
    return row === undefined ? undefined : this.#rows.one(row)
  }
  async files(name: string): Promise<readonly ArchivedFile[]> {
    const rows = await this.#db.all<{ readonly path: string; readonly bytes: Uint8Array }>`
      SELECT path, bytes FROM skills_file WHERE skill = ${name} ORDER BY path`
    return rows.map(({ path, bytes }) => ({ name: path, bytes: Buffer.from(bytes) }))
  }

  /** `files` take the place of those before; none are kept where only one daemon uses the database. */
  put(skill: InstalledSkill, files: readonly ArchivedFile[]): readonly Statement[] {
    const { name, revision, state, version, source, sha256, signed_by: signedBy, mac } = skill
    const permissions = JSON.stringify(skill.permissions)
    return [
      this.#db.sql`INSERT INTO skills_installed
          (name, revision, state, version, source, sha256, signed_by, permissions, files_sha256, mac, updated_at)
        VALUES (${name}, ${revision}, ${state}, ${version}, ${source}, ${sha256}, ${signedBy}, ${permissions},
          ${skill.files_sha256}, ${mac}, ${skill.updated_at})
        ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, state = excluded.state,
          version = excluded.version, source = excluded.source, sha256 = excluded.sha256,
          signed_by = excluded.signed_by, permissions = excluded.permissions, files_sha256 = excluded.files_sha256,
          mac = excluded.mac, updated_at = excluded.updated_at`,
      this.#db.sql`DELETE FROM skills_file WHERE skill = ${name}`,
      ...files.map(
        ({ name: path, bytes }) =>
          this.#db.sql`INSERT INTO skills_file (skill, path, bytes) VALUES (${name}, ${path}, ${bytes})`,
      ),
    ]
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}

/** Whether a skill was ever installed: the others are found in the folder alone. */
export async function hasInstalled(db: PluginDatabase): Promise<boolean> {
  return (await db.one`SELECT 1 AS found FROM skills_installed LIMIT 1`) !== undefined
}
