import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

const ClaimRow = v.object({ home: v.string(), digest: v.string() })

/**
 * Which homes on this database have a file, and with which content: a workflow of a file is gone when no home has it any
 * more.
 */
export class FileClaims {
  readonly #db: Pick<PluginDatabase, 'all' | 'sql'>
  readonly #home: string
  /** `home` is the own one. */
  constructor(db: Pick<PluginDatabase, 'all' | 'sql'>, home: string) {
    this.#db = db
    this.#home = home
  }

  /** What this home had of the file, and whether others have it. */
  async find(file: string): Promise<{ readonly own: string | undefined; readonly hasOthers: boolean }> {
    const rows = v.parse(
      v.array(ClaimRow),
      await this.#db.all`SELECT home, digest FROM workflows_file WHERE file = ${file}`,
    )
    return {
      own: rows.find(({ home }) => home === this.#home)?.digest,
      hasOthers: rows.some(({ home }) => home !== this.#home),
    }
  }
  claim(file: string, digest: string): Statement {
    return this.#db.sql`INSERT INTO workflows_file (home, file, digest) VALUES (${this.#home}, ${file}, ${digest})
      ON CONFLICT (home, file) DO UPDATE SET digest = excluded.digest`
  }
  /** This home does not have it any more. */
  release(file: string): Statement {
    return this.#db.sql`DELETE FROM workflows_file WHERE home = ${this.#home} AND file = ${file}`
  }
  /** Of every home. */
  drop(file: string): Statement {
    return this.#db.sql`DELETE FROM workflows_file WHERE file = ${file}`
  }
}
