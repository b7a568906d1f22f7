import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

const Owner = v.object({
  id: v.string(),
  beats: v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number)),
})
export type Owner = v.InferOutput<typeof Owner>

/** The rows of `channels_owner`: the instances that work on messages. */
export class OwnerStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** There is one process on a home: the owners that were there before are dead. */
  async begin(id: string, home: string): Promise<void> {
    await this.#db.batch([
      this.#db.sql`DELETE FROM channels_owner WHERE home = ${home}`,
      this.#db.sql`INSERT INTO channels_owner (id, home, beats) VALUES (${id}, ${home}, 0)`,
    ])
  }
  async end(id: string): Promise<void> {
    await this.#db.run`DELETE FROM channels_owner WHERE id = ${id}`
  }
  /** Whether it is still registered. */
  async beat(id: string): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE channels_owner SET beats = beats + 1 WHERE id = ${id}`
    return changes > 0
  }
  async others(id: string): Promise<readonly Owner[]> {
    return v.parse(v.array(Owner), await this.#db.all`SELECT id, beats FROM channels_owner WHERE id <> ${id}`)
  }
  /** Removes owners unless they beat meanwhile, and takes what belongs to nobody. How many messages that are. */
  async takeOver(id: string, dead: readonly Owner[] = []): Promise<number> {
    let taken = 0
    const remove = dead.map((one): Statement => {
      return this.#db.sql`DELETE FROM channels_owner WHERE id = ${one.id} AND beats = ${one.beats}`
    })
    const take = this.#db.sql`UPDATE channels_inbox SET owner = ${id}, state = 'pending'
      WHERE state IN ('pending', 'processing') AND owner NOT IN (SELECT id FROM channels_owner)`
    await this.#db.batch([...remove, { ...take, written: (changes) => (taken = changes) }])
    return taken
  }
}
