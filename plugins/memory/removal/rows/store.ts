import * as v from 'valibot'
import { numberColumn } from 'svc/internal'
import type { Changes, PluginDatabase, Statement } from 'svc/sdk'
import { Count } from '../../entries/row.ts'
import { idSet, isOfRemovedAgent } from '../../store.ts'
import type { Sized } from '../slices.ts'

/** Rows of a table of one commit: what one write keeps others waiting. Those of signs have some 10,000 bytes each. */
const ROWS = 100
const SIGNS = 20
/** Different words that one commit takes out of the index of SQLite, which looks for each of them. */
const WORDS = 100

const MarkRow = v.object({ agent_id: v.string() })
const TextRow = v.object({ id: numberColumn, words: v.string() })
const SizedRow = v.object({ id: v.string(), chars: numberColumn })

/** The statements that delete the memory of removed agents, some rows at a time, and memories that are forgotten. */
export class RemovalStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  commit(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }
  /** The agents whose memories are being deleted. */
  async marked(): Promise<readonly string[]> {
    const rows = await this.#db.all`SELECT agent_id FROM memory_removal ORDER BY removed_at, agent_id`
    return v.parse(v.array(MarkRow), rows).map(({ agent_id: agentId }) => agentId)
  }
  mark(agentId: string, at: string): Statement {
    return this.#db.sql`INSERT INTO memory_removal (agent_id, removed_at) VALUES (${agentId}, ${at})
      ON CONFLICT (agent_id) DO NOTHING`
  }
  unmark(agentId: string): Statement {
    return this.#db.sql`DELETE FROM memory_removal WHERE agent_id = ${agentId}`
  }

  /** Of memories that are about to be forgotten, how long what the index has of them is. */
  async indexed(ids: readonly string[]): Promise<readonly Sized[]> {
    const rows = await this.#db.all`SELECT memory_id AS id, length(words) AS chars FROM memory_text
      WHERE memory_id IN (SELECT key FROM json_each(${idSet(ids)}))`
    return v.parse(v.array(SizedRow), rows)
  }
  /** All that holds the words of memories. */
  drop(ids: readonly string[]): readonly Statement[] {
    const set = idSet(ids)
    return [
      // First: what others write of them at the same time is there by then, or is not written.
      this.#db.sql`DELETE FROM memory_entry WHERE id IN (SELECT key FROM json_each(${set}))`,
      this.#db.sql`DELETE FROM memory_version WHERE memory_id IN (SELECT key FROM json_each(${set}))`,
      this.#db.sql`DELETE FROM memory_vector WHERE memory_id IN (SELECT key FROM json_each(${set}))`,
    ]
  }
  /** Makes memories those of another agent, with nothing by which one could be taken for another. */
  give(ids: readonly string[], agentId: string): Statement {
    return this.#db.sql`UPDATE memory_entry SET agent_id = ${agentId}, user_id = '', key = NULL, idempotency_key = NULL
      WHERE id IN (SELECT key FROM json_each(${idSet(ids)}))`
  }

  /** The words of a memory become those of one that is only there to be deleted; if another one is there. */
  giveWords(id: string, newId: string, agentId: string, other: string): readonly Statement[] {
    return [
      this.#db
        .sql`INSERT INTO memory_entry (id, agent_id, user_id, session_id, level, content, confidence, tags, source,
          metadata, superseded_by, created_at, updated_at, accessed_at, access_count, strength, embedded_with)
        SELECT CAST(${newId} AS TEXT), CAST(${agentId} AS TEXT), '', '', level, '', confidence, '[]', '{}', '{}', '',
          created_at, updated_at, 0, 0, strength, '' FROM memory_entry
        WHERE id = ${id} AND EXISTS (SELECT 1 FROM memory_entry AS other WHERE other.id = ${other})`,
      this.#db.sql`UPDATE memory_text SET memory_id = ${newId}
        WHERE memory_id = ${id} AND EXISTS (SELECT 1 FROM memory_entry WHERE id = ${newId})`,
    ]
  }
  /** Takes some words of a long text out of the index of SQLite. Whether there were more than go with the memory. */
  async shorten(id: string): Promise<boolean> {
    if (this.#db.dialect !== 'sqlite') return false
    const row = await this.#db.one`SELECT id, words FROM memory_text WHERE memory_id = ${id}`
    const text = v.parse(v.optional(TextRow), row)
    const words = text?.words.split(' ') ?? []
    const different = new Set(words)
    if (!text || different.size <= WORDS) return false
    const taken = new Set([...different].slice(0, WORDS))
    const those = (isTaken: boolean): string => words.filter((word) => taken.has(word) === isTaken).join(' ')
    // The second statement makes up for the first one's count of texts.
    await this.#db.batch([
      this.#db
        .sql`INSERT INTO memory_words (memory_words, rowid, words, scopes) VALUES ('delete', ${text.id}, ${those(true)}, '')`,
      this.#db.sql`INSERT INTO memory_words (rowid, words, scopes) VALUES (${text.id}, '', '')`,
      this.#db.sql`UPDATE memory_text SET words = ${those(false)} WHERE id = ${text.id}`,
    ])
    return true
  }

  async entries(agentId: string): Promise<readonly Sized[]> {
    const rows = await this.#db.all`SELECT id, length(content) AS chars FROM memory_entry
      WHERE agent_id = ${agentId} AND ${isOfRemovedAgent} LIMIT ${ROWS}`
    return v.parse(v.array(SizedRow), rows)
  }
  /** Of these ids those that are of removed agents. */
  async among(ids: readonly string[]): Promise<readonly Sized[]> {
    const rows = await this.#db.all`SELECT id, length(content) AS chars FROM memory_entry
      WHERE id IN (SELECT key FROM json_each(${idSet(ids)})) AND ${isOfRemovedAgent}`
    return v.parse(v.array(SizedRow), rows)
  }

  async countVersions(ids: readonly string[]): Promise<number> {
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM memory_version
      WHERE memory_id IN (SELECT key FROM json_each(${idSet(ids)}))`
    return v.parse(Count, row).count
  }
  dropVersions(ids: readonly string[]): Statement {
    return this.#db.sql`DELETE FROM memory_version WHERE (memory_id, number) IN
      (SELECT memory_id, number FROM memory_version
        WHERE memory_id IN (SELECT key FROM json_each(${idSet(ids)})) LIMIT ${ROWS})`
  }
  /** With at most as many versions as one commit takes. */
  dropEntries(ids: readonly string[]): readonly Statement[] {
    const set = idSet(ids)
    return [
      // First, as in `drop`; the words go with it.
      this.#db.sql`DELETE FROM memory_entry WHERE id IN (SELECT key FROM json_each(${set})) AND ${isOfRemovedAgent}`,
      this.dropVersions(ids),
      this.#db.sql`DELETE FROM memory_vector WHERE memory_id IN (SELECT key FROM json_each(${set}))`,
    ]
  }
  isSliceOfVersions(count: number): boolean {
    return count <= ROWS
  }

  async hasSigns(agentId: string): Promise<boolean> {
    const row = await this.#db.one`SELECT id FROM memory_sign
      WHERE agent_id = ${agentId} AND agent_id IN (SELECT agent_id FROM memory_removal) LIMIT 1`
    return row !== undefined
  }
  /** Signs go before their vectors, whose places would be emptied one by one else. */
  dropSigns(agentId: string): Statement {
    return this.#db.sql`DELETE FROM memory_sign WHERE id IN (SELECT id FROM memory_sign WHERE agent_id = ${agentId}
      AND agent_id IN (SELECT agent_id FROM memory_removal) LIMIT ${SIGNS})`
  }
  /** What is left of an agent without entries. */
  dropOthers(agentId: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM memory_tombstone WHERE id IN (SELECT id FROM memory_tombstone
        WHERE agent_id = ${agentId} AND agent_id IN (SELECT agent_id FROM memory_removal) LIMIT ${ROWS})`,
      this.#db.sql`DELETE FROM memory_use WHERE turn_id IN (SELECT turn_id FROM memory_use
        WHERE agent_id = ${agentId} AND agent_id IN (SELECT agent_id FROM memory_removal) LIMIT ${ROWS})`,
      this.#db.sql`DELETE FROM memory_relation WHERE id IN (SELECT id FROM memory_relation
        WHERE agent_id = ${agentId} AND agent_id IN (SELECT agent_id FROM memory_removal) LIMIT ${ROWS})`,
      this.#db.sql`DELETE FROM memory_entity WHERE id IN (SELECT id FROM memory_entity
        WHERE agent_id = ${agentId} AND agent_id IN (SELECT agent_id FROM memory_removal) LIMIT ${ROWS})`,
    ]
  }
}
