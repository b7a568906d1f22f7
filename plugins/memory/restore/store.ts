import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import { sqlPart } from 'svc/sdk'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Memory, MemorySource } from '../contract.ts'
import { VersionRow } from '../entries/row.ts'
import { idSet } from '../store.ts'

const OwnedVersion = v.object({ ...VersionRow.entries, memory_id: v.string() })
type OwnedVersion = v.InferOutput<typeof OwnedVersion>

/** A former content. */
export interface Version {
  readonly content: string
  readonly source: MemorySource | null
  readonly writtenAt: string
  readonly replacedAt: string
  readonly replacedBy: string
}

/** The statements that read a backup and write one back. */
export class RestoreStore {
  readonly #db: PluginDatabase
  readonly #versions: RowReader<typeof OwnedVersion>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#versions = new RowReader({
      table: 'memory_version',
      key: ['memory_id', 'number'],
      schema: OwnedVersion,
      log,
    })
  }

  /** Of many memories, the oldest of each first. */
  async versions(ids: readonly string[]): Promise<readonly OwnedVersion[]> {
    return this.#versions.all(
      await this.#db
        .all`SELECT memory_id, number, content, source, written_at, replaced_at, replaced_by FROM memory_version
        WHERE memory_id IN (SELECT key FROM json_each(${idSet(ids)})) ORDER BY memory_id, number`,
    )
  }

  /** As it was. With too many notes the content becomes NULL, which the column refuses: the whole batch fails. */
  insert(memory: Memory, maxNotes: number): Statement {
    const { agentId, key } = memory
    const content =
      key === undefined
        ? sqlPart`${memory.content}`
        : sqlPart`CASE WHEN (SELECT COUNT(*) FROM memory_entry
            WHERE agent_id = ${agentId} AND key IS NOT NULL AND superseded_by = '') < ${maxNotes}
            THEN CAST(${memory.content} AS TEXT) END`
    const statement = this.#db
      .sql`INSERT INTO memory_entry (id, agent_id, user_id, session_id, level, category, content,
        key, confidence, tags, source, metadata, supersedes, superseded_by, idempotency_key, created_at, updated_at,
        accessed_at, access_count, strength, embedded_with, has_words)
      VALUES (${memory.id}, ${agentId}, ${memory.userId ?? ''}, ${memory.sessionId ?? ''}, ${memory.level},
        ${memory.category ?? null}, ${content}, ${key ?? null}, ${memory.confidence}, ${JSON.stringify(memory.tags)},
        ${JSON.stringify(memory.source)}, ${JSON.stringify(memory.metadata)}, ${memory.supersedes ?? null},
        ${memory.supersededBy ?? ''}, NULL, ${memory.createdAt}, ${memory.updatedAt},
        ${Date.parse(memory.accessedAt)}, ${memory.accessCount}, ${memory.strength}, '', 1)`
    return key === undefined ? statement : { ...statement, exclusive: `memory_note ${agentId}` }
  }
  version(id: string, number: number, version: Version): Statement {
    const source = version.source && JSON.stringify(version.source)
    return this.#db
      .sql`INSERT INTO memory_version (memory_id, number, content, source, written_at, replaced_at, replaced_by)
      VALUES (${id}, ${number}, ${version.content}, ${source}, ${version.writtenAt}, ${version.replacedAt},
        ${version.replacedBy})`
  }
}
