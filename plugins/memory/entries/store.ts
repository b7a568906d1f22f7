import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import { sqlPart } from 'svc/sdk'
import type { Changes, Logger, PluginDatabase, SqlPart, Statement } from 'svc/sdk'
import type { Memory, MemoryFilter, MemorySource, NewMemory } from '../contract.ts'
import { relationsOfForgotten } from '../graph/store.ts'
import type { ReadScope } from './access.ts'
import { DELETION, idSet, isKept, matching, visibleTo } from '../store.ts'
import type { Among } from '../vectors/store.ts'
import {
  Count,
  EntryRow,
  FigureRow,
  Id,
  LackingRow,
  OwnerRow,
  TextRow,
  TombstoneRow,
  UserRow,
  VectorRow,
  VersionRow,
} from './row.ts'

/** A page of a list. */
export interface Page {
  readonly limit: number
  readonly offset: number
}
/** A memory that is being added. */
export type Draft = NewMemory & { readonly id: string; readonly at: number; readonly createdAt: string }

/** The statements on memories; those of what happens to them with time are in `UpkeepStore`. */
export class MemoryStore {
  readonly #db: PluginDatabase
  readonly #entries: RowReader<typeof EntryRow>
  readonly #versions: RowReader<typeof VersionRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#entries = new RowReader({ table: 'memory_entry', key: ['id'], schema: EntryRow, log })
    this.#versions = new RowReader({ table: 'memory_version', key: ['memory_id', 'number'], schema: VersionRow, log })
  }

  commit(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }

  /**
   * Writes nothing when the agent has one with this idempotency key, nor when one of `unlessDeleted` was deleted.
   * `maxNotes`: for one with a key.
   */
  insert(draft: Draft, maxNotes: number, unlessDeleted: readonly string[] = []): Statement {
    const { agentId, key = null } = draft
    const values = {
      tags: JSON.stringify(draft.tags),
      source: JSON.stringify(draft.source),
      metadata: JSON.stringify(draft.metadata ?? {}),
    }
    if (key !== null) return this.#insertNote(draft, key, values, maxNotes)
    if (unlessDeleted.length > 0) return this.#insertUnlessDeleted(draft, values, unlessDeleted)
    return this.#db.sql`INSERT INTO memory_entry (id, agent_id, user_id, session_id, level, category, content, key,
        confidence, tags, source, metadata, supersedes, superseded_by, idempotency_key, created_at, updated_at,
        accessed_at, access_count, strength, embedded_with, has_words)
      VALUES (${draft.id}, ${agentId}, ${draft.userId ?? ''}, ${draft.sessionId ?? ''}, ${draft.level},
        ${draft.category ?? null}, ${draft.content}, NULL, ${draft.confidence}, ${values.tags}, ${values.source},
        ${values.metadata}, ${draft.supersedes ?? null}, '', ${draft.idempotencyKey ?? null}, ${draft.createdAt},
        ${draft.createdAt}, ${draft.at}, 0, ${draft.confidence}, '', 1)
      ON CONFLICT (agent_id, idempotency_key) DO NOTHING`
  }
  /** `exclusive`, as a deletion is: one that is not committed yet leaves no mark that could be seen here. */
  #insertUnlessDeleted(
    draft: Draft,
    values: { readonly tags: string; readonly source: string; readonly metadata: string },
    ids: readonly string[],
  ): Statement {
    return {
      ...this.#db.sql`INSERT INTO memory_entry (id, agent_id, user_id, session_id, level, category, content, key,
        confidence, tags, source, metadata, supersedes, superseded_by, idempotency_key, created_at, updated_at,
        accessed_at, access_count, strength, embedded_with, has_words)
      SELECT CAST(${draft.id} AS TEXT), CAST(${draft.agentId} AS TEXT), CAST(${draft.userId ?? ''} AS TEXT),
        CAST(${draft.sessionId ?? ''} AS TEXT), CAST(${draft.level} AS TEXT), CAST(${draft.category ?? null} AS TEXT),
        CAST(${draft.content} AS TEXT), NULL, CAST(${draft.confidence} AS DOUBLE PRECISION),
        CAST(${values.tags} AS TEXT), CAST(${values.source} AS TEXT), CAST(${values.metadata} AS TEXT),
        CAST(${draft.supersedes ?? null} AS TEXT), '', CAST(${draft.idempotencyKey ?? null} AS TEXT),
        CAST(${draft.createdAt} AS TEXT), CAST(${draft.createdAt} AS TEXT), CAST(${draft.at} AS BIGINT), 0,
        CAST(${draft.confidence} AS DOUBLE PRECISION), '', 1
      WHERE NOT EXISTS (SELECT 1 FROM memory_tombstone
        WHERE memory_tombstone.id IN (SELECT key FROM json_each(${idSet(ids)})))
      ON CONFLICT (agent_id, idempotency_key) DO NOTHING`,
      exclusive: DELETION,
    }
  }
  /** With too many of them the content becomes NULL, which the column refuses, so that the whole batch fails. */
  #insertNote(
    draft: Draft,
    key: string,
    values: { readonly tags: string; readonly source: string; readonly metadata: string },
    maxNotes: number,
  ): Statement {
    const { agentId } = draft
    return {
      ...this.#db.sql`INSERT INTO memory_entry (id, agent_id, user_id, session_id, level, category, content, key,
        confidence, tags, source, metadata, supersedes, superseded_by, idempotency_key, created_at, updated_at,
        accessed_at, access_count, strength, embedded_with, has_words)
      VALUES (${draft.id}, ${agentId}, ${draft.userId ?? ''}, ${draft.sessionId ?? ''}, ${draft.level},
        ${draft.category ?? null},
        CASE WHEN (SELECT COUNT(*) FROM memory_entry
          WHERE agent_id = ${agentId} AND key IS NOT NULL AND superseded_by = '') < ${maxNotes}
          THEN CAST(${draft.content} AS TEXT) END,
        ${key}, ${draft.confidence}, ${values.tags}, ${values.source}, ${values.metadata}, NULL, '',
        ${draft.idempotencyKey ?? null}, ${draft.createdAt}, ${draft.createdAt}, ${draft.at}, 0, ${draft.confidence},
        '', 1)`,
      exclusive: `memory_note ${agentId}`,
    }
  }
  /**
   * Marks what a new memory supersedes. Makes the batch fail when that is no memory of the agent, or superseded already.
   * Goes after `insert`, and does nothing when that wrote nothing.
   */
  supersede({ id, agentId, supersedes = '' }: Draft): readonly Statement[] {
    return [
      {
        ...this.#db.sql`UPDATE memory_entry SET superseded_by = ${id}
        WHERE id = ${supersedes} AND agent_id = ${agentId} AND superseded_by = ''
          AND EXISTS (SELECT 1 FROM memory_entry AS newer WHERE newer.id = ${id})`,
        // As a change of its content.
        exclusive: `memory_version ${supersedes}`,
      },
      this.#db.sql`DELETE FROM memory_vector WHERE memory_id = ${supersedes} AND EXISTS
        (SELECT 1 FROM memory_entry WHERE id = ${supersedes} AND superseded_by = ${id})`,
      this.#db.sql`DELETE FROM memory_text WHERE memory_id = ${supersedes} AND EXISTS
        (SELECT 1 FROM memory_entry WHERE id = ${supersedes} AND superseded_by = ${id})`,
      this.#db.sql`UPDATE memory_entry SET content = CASE WHEN EXISTS (SELECT 1 FROM memory_entry AS former
          WHERE former.id = ${supersedes} AND former.superseded_by = ${id}) THEN content END
        WHERE id = ${id}`,
    ]
  }
  /**
   * The content of now becomes a version. Goes before `replace`. Makes the batch fail when there is nothing to replace:
   * the content is NULL then, which the column refuses.
   */
  keepVersion(id: string, by: string, at: string): Statement {
    const present = sqlPart`FROM memory_entry WHERE id = ${id} AND superseded_by = '' AND ${isKept}`
    return {
      ...this.#db
        .sql`INSERT INTO memory_version (memory_id, number, content, source, written_at, replaced_at, replaced_by)
      VALUES (${id}, COALESCE((SELECT MAX(number) FROM memory_version WHERE memory_id = ${id}), 0) + 1,
        (SELECT content ${present}), (SELECT source ${present}), (SELECT updated_at ${present}), ${at}, ${by})`,
      exclusive: `memory_version ${id}`,
    }
  }
  replace(id: string, content: string, source: MemorySource, at: string): Statement {
    return this.#db
      .sql`UPDATE memory_entry SET content = ${content}, source = ${JSON.stringify(source)}, updated_at = ${at},
        embedded_with = '', has_words = 1
      WHERE id = ${id} AND superseded_by = ''`
  }
  dropVersions(id: string, max: number): Statement {
    return this.#db.sql`DELETE FROM memory_version WHERE memory_id = ${id} AND number <=
      (SELECT MAX(number) FROM memory_version WHERE memory_id = ${id}) - CAST(${max} AS INTEGER)`
  }

  /** Leaves a mark of each, and takes away what only they say. Goes before what deletes them. */
  forget(ids: readonly string[], by: string, at: string): readonly Statement[] {
    const set = idSet(ids)
    return [
      {
        ...this.#db.sql`INSERT INTO memory_tombstone (id, agent_id, user_id, created_at, deleted_at, deleted_by)
        SELECT id, agent_id, user_id, created_at, CAST(${at} AS TEXT), CAST(${by} AS TEXT) FROM memory_entry
        WHERE id IN (SELECT key FROM json_each(${set}))
        ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at, deleted_by = excluded.deleted_by`,
        exclusive: DELETION,
      },
      ...relationsOfForgotten(this.#db, set),
    ]
  }
  /** Of these ids those that are there, superseded ones too, with their agents. */
  async owners(ids: readonly string[]): Promise<readonly OwnerRow[]> {
    const rows = await this.#db.all`SELECT id, agent_id FROM memory_entry
      WHERE id IN (SELECT key FROM json_each(${idSet(ids)})) AND ${isKept}`
    return v.parse(v.array(OwnerRow), rows)
  }
  /** Superseded ones too. Those that cannot be read are left out. */
  async byIds(ids: readonly string[]): Promise<readonly Memory[]> {
    if (ids.length === 0) return []
    return this.#entries.all(
      await this.#db.all`SELECT * FROM memory_entry
        WHERE id IN (SELECT key FROM json_each(${idSet(ids)})) AND ${isKept}`,
    )
  }
  async byKey(agentId: string, key: string): Promise<Memory | undefined> {
    return this.#entries.one(
      await this.#db.one`SELECT * FROM memory_entry
        WHERE agent_id = ${agentId} AND key = ${key} AND superseded_by = ''`,
    )
  }
  /** What was found in the messages of one request. */
  async reported(id: string): Promise<readonly Memory[]> {
    return this.#entries.all(
      await this.#db.all`SELECT * FROM memory_entry
        WHERE substr(idempotency_key, 1, ${id.length + 1}) = ${`${id}:`} AND ${isKept} ORDER BY id`,
    )
  }
  /** The notes of an agent, the latest first. */
  async notes(agentId: string): Promise<readonly Memory[]> {
    return this.#entries.all(
      await this.#db.all`SELECT * FROM memory_entry
        WHERE agent_id = ${agentId} AND key IS NOT NULL AND superseded_by = '' ORDER BY updated_at DESC, key`,
    )
  }
  /** The ids with all that they superseded, one after the other. */
  async chains(ids: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#db.all`WITH RECURSIVE memory_chain (id, supersedes) AS (
        SELECT id, supersedes FROM memory_entry WHERE id IN (SELECT key FROM json_each(${idSet(ids)}))
        UNION SELECT earlier.id, earlier.supersedes FROM memory_entry AS earlier
          JOIN memory_chain ON memory_chain.supersedes = earlier.id AND earlier.superseded_by = memory_chain.id)
      SELECT id FROM memory_chain`
    return v.parse(v.array(Id), rows).map(({ id }) => id)
  }

  /** What the scope may see of these agents, the newest first. */
  async list(
    scope: ReadScope,
    agentIds: readonly string[],
    filter: MemoryFilter,
    { limit, offset }: Page,
  ): Promise<readonly Memory[]> {
    return this.#entries.all(
      await this.#db.all`SELECT * FROM memory_entry WHERE ${this.#listed(scope, agentIds, filter)}
        ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`,
    )
  }
  async count(scope: ReadScope, agentIds: readonly string[], filter: MemoryFilter): Promise<number> {
    const row = await this.#db
      .one`SELECT COUNT(*) AS count FROM memory_entry WHERE ${this.#listed(scope, agentIds, filter)}`
    return v.parse(Count, row).count
  }
  #listed(scope: ReadScope, agentIds: readonly string[], filter: MemoryFilter): SqlPart {
    return sqlPart`agent_id IN (SELECT key FROM json_each(${idSet(agentIds)})) AND superseded_by = ''
      AND ${visibleTo(scope)} AND ${matching(filter, this.#db.dialect)}`
  }
  /** Of these memories those that the scope may see, superseded ones too. */
  async visible(scope: ReadScope, ids: readonly string[]): Promise<readonly Memory[]> {
    if (ids.length === 0) return []
    return this.#entries.all(
      await this.#db.all`SELECT * FROM memory_entry
        WHERE id IN (SELECT key FROM json_each(${idSet(ids)})) AND ${visibleTo(scope)}`,
    )
  }
  /** The same, of those that fit the filter. */
  async matching(scope: ReadScope, filter: MemoryFilter, ids: readonly string[]): Promise<readonly Memory[]> {
    if (ids.length === 0) return []
    return this.#entries.all(
      await this.#db.all`SELECT * FROM memory_entry WHERE id IN (SELECT key FROM json_each(${idSet(ids)}))
        AND ${visibleTo(scope)} AND ${matching(filter, this.#db.dialect)}`,
    )
  }
  /** The same, of those whose vector is of this model and of their content. */
  async comparable(
    ids: readonly string[],
    { scope, filter, model }: Pick<Among, 'scope' | 'filter' | 'model'>,
  ): Promise<readonly Memory[]> {
    return this.#entries.all(
      await this.#db.all`SELECT * FROM memory_entry WHERE id IN (SELECT key FROM json_each(${idSet(ids)}))
        AND embedded_with = ${model} AND superseded_by = '' AND ${visibleTo(scope)}
        AND ${matching(filter, this.#db.dialect)}`,
    )
  }
  /** Agents with memories for a person. */
  async agentsOf(userId: string): Promise<readonly string[]> {
    const rows = await this.#db.all`SELECT DISTINCT agent_id AS id FROM memory_entry
      WHERE user_id = ${userId} AND ${isKept}`
    return v.parse(v.array(Id), rows).map(({ id }) => id)
  }
  /** Persons for whom something is kept, of those that the scope may see; the owner of the daemon is none of them. */
  async users(scope: ReadScope, { limit, offset }: Page): Promise<readonly UserRow[]> {
    return v.parse(
      v.array(UserRow),
      await this.#db.all`SELECT user_id, COUNT(*) AS count, MAX(created_at) AS newest_at FROM memory_entry
        WHERE user_id <> '' AND superseded_by = '' AND ${visibleTo(scope)}
        GROUP BY user_id ORDER BY newest_at DESC, user_id LIMIT ${limit} OFFSET ${offset}`,
    )
  }
  async countUsers(scope: ReadScope): Promise<number> {
    const row = await this.#db.one`SELECT COUNT(DISTINCT user_id) AS count FROM memory_entry
      WHERE user_id <> '' AND superseded_by = '' AND ${visibleTo(scope)}`
    return v.parse(Count, row).count
  }
  async agents(): Promise<readonly string[]> {
    // From one agent to the next: DISTINCT would go through all memories of each.
    const rows = await this.#db.all`WITH RECURSIVE memory_agent (id) AS (
        SELECT MIN(agent_id) FROM memory_entry
        UNION ALL SELECT (SELECT MIN(agent_id) FROM memory_entry WHERE agent_id > memory_agent.id)
          FROM memory_agent WHERE id IS NOT NULL)
      SELECT id FROM memory_agent WHERE id NOT IN (SELECT agent_id FROM memory_removal) AND id IS NOT NULL`
    return v.parse(v.array(Id), rows).map(({ id }) => id)
  }

  async versions(id: string): Promise<readonly VersionRow[]> {
    return this.#versions.all(
      await this.#db
        .all`SELECT memory_id, number, content, source, written_at, replaced_at, replaced_by FROM memory_version
        WHERE memory_id = ${id} ORDER BY number`,
    )
  }
  /** Of these ids those that were deleted. */
  async deleted(ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (ids.length === 0) return new Set()
    const rows = await this.#db
      .all`SELECT id FROM memory_tombstone WHERE id IN (SELECT key FROM json_each(${idSet(ids)}))`
    return new Set(v.parse(v.array(Id), rows).map(({ id }) => id))
  }
  async tombstone(id: string): Promise<TombstoneRow | undefined> {
    return v.parse(
      v.optional(TombstoneRow),
      await this.#db.one`SELECT * FROM memory_tombstone
        WHERE id = ${id} AND agent_id NOT IN (SELECT agent_id FROM memory_removal)`,
    )
  }

  /** Those of one model, by memory. */
  async vectors(ids: readonly string[], model: string): Promise<ReadonlyMap<string, Uint8Array>> {
    if (ids.length === 0) return new Map()
    const rows = await this.#db.all`SELECT memory_id, model, vector FROM memory_vector
      WHERE memory_id IN (SELECT key FROM json_each(${idSet(ids)})) AND model = ${model}`
    return new Map(v.parse(v.array(VectorRow), rows).map((row) => [row.memory_id, row.vector]))
  }
  /** Memories of an agent without a vector of this model, oldest first. */
  async withoutVector(agentId: string, model: string, limit: number): Promise<readonly TextRow[]> {
    return v.parse(
      v.array(TextRow),
      await this.#db.all`SELECT id, key, content, updated_at FROM memory_entry
        WHERE agent_id = ${agentId} AND superseded_by = '' AND embedded_with <> ${model} AND ${isKept}
        ORDER BY id LIMIT ${limit}`,
    )
  }
  /** Of the text as it was read: of another one it writes nothing. */
  setVector(
    row: { readonly id: string; readonly updated_at: string },
    agentId: string,
    model: string,
    vector: Uint8Array,
  ): readonly Statement[] {
    return [
      this.#db.sql`UPDATE memory_entry SET embedded_with = ${model}
        WHERE id = ${row.id} AND updated_at = ${row.updated_at} AND superseded_by = ''`,
      this.#db.sql`INSERT INTO memory_vector (memory_id, agent_id, model, vector)
        SELECT id, agent_id, CAST(${model} AS TEXT), ${vector} FROM memory_entry
        WHERE id = ${row.id} AND agent_id = ${agentId} AND updated_at = ${row.updated_at} AND superseded_by = ''
        ON CONFLICT (memory_id) DO UPDATE SET model = excluded.model, vector = excluded.vector,
          place = NULL`,
    ]
  }
  /** Agents with memories that have no vector at all. */
  async agentsWithoutVectors(): Promise<readonly string[]> {
    const rows = await this.#db.all`SELECT DISTINCT agent_id AS id FROM memory_entry
      WHERE embedded_with = '' AND superseded_by = '' AND ${isKept}`
    return v.parse(v.array(Id), rows).map(({ id }) => id)
  }
  async vectorsOf(wanted: readonly string[]): Promise<ReadonlyMap<string, { model: string; vector: Uint8Array }>> {
    const rows = await this.#db.all`SELECT memory_id, model, vector FROM memory_vector
      WHERE memory_id IN (SELECT key FROM json_each(${idSet(wanted)}))`
    return new Map(v.parse(v.array(VectorRow), rows).map((row) => [row.memory_id, row]))
  }
  /** Whether some, of what the scope may see of these agents, are not in an index yet. */
  async lacking(scope: ReadScope, agentIds: readonly string[]): Promise<{ words: boolean; vectors: boolean }> {
    const seen = sqlPart`WHERE agent_id IN (SELECT key FROM json_each(${idSet(agentIds)})) AND ${visibleTo(scope)}`
    // The limit keeps the engines from going through all of an agent: these rows have indexes of their own.
    const row = await this.#db.one`SELECT
      CASE WHEN EXISTS (SELECT 1 FROM (SELECT agent_id, user_id, session_id, level FROM memory_entry
        WHERE has_words = 0 AND superseded_by = '' LIMIT 1000000) AS memory_entry ${seen})
        THEN 1 ELSE 0 END AS words,
      CASE WHEN EXISTS (SELECT 1 FROM (SELECT agent_id, user_id, session_id, level FROM memory_entry
        WHERE embedded_with = '' AND superseded_by = '' LIMIT 1000000) AS memory_entry ${seen})
        THEN 1 ELSE 0 END AS vectors`
    const { words, vectors } = v.parse(LackingRow, row)
    return { words: words === 1, vectors: vectors === 1 }
  }
  /** How many there are by level and category, of what the scope may see of these agents. */
  async figures(scope: ReadScope, agentIds: readonly string[]): Promise<readonly FigureRow[]> {
    return v.parse(
      v.array(FigureRow),
      await this.#db.all`SELECT level, COALESCE(category, '') AS category, COUNT(*) AS count,
          SUM(CASE WHEN embedded_with = '' THEN 1 ELSE 0 END) AS without_vector,
          SUM(CASE WHEN has_words = 0 THEN 1 ELSE 0 END) AS without_words
        FROM memory_entry WHERE ${this.#listed(scope, agentIds, {})} GROUP BY level, COALESCE(category, '')`,
    )
  }
}
