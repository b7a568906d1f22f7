import * as v from 'valibot'
import { nullableColumn, numberColumn } from 'svc/internal'
import { sqlPart } from 'svc/sdk'
import type { Changes, PluginDatabase, SqlPart, Statement } from 'svc/sdk'
import type { MemoryFilter } from '../contract.ts'
import type { ReadScope } from '../entries/access.ts'
import { bytesColumn, VectorRow } from '../entries/row.ts'
import { idSet, isKept, joined, numbersOf } from '../store.ts'
import { CHUNK } from './signs.ts'

/** A vector whose signs are not in the index yet. */
const UnplacedRow = v.object({
  memory_id: v.string(),
  agent_id: v.string(),
  model: v.string(),
  vector: bytesColumn,
  level: v.string(),
  user_id: v.string(),
  session_id: v.string(),
})
export type UnplacedRow = v.InferOutput<typeof UnplacedRow>
const ChunkRow = v.object({ id: numberColumn, version: numberColumn, places: bytesColumn })
export type ChunkRow = v.InferOutput<typeof ChunkRow>
const VersionsRow = v.object({ ids: nullableColumn(v.string()), versions: nullableColumn(v.string()) })
export type Version = Pick<ChunkRow, 'id' | 'version'>
export type NearRow = v.InferOutput<typeof VectorRow>
const AgentRow = v.object({ agent_id: v.string() })

/** Of whose vectors which count. */
export interface Among {
  readonly scope: ReadScope
  readonly agentIds: readonly string[]
  readonly filter: MemoryFilter
  readonly model: string
}

/** Held by what fills places and drops rows: two daemons may find the same place empty. */
const PLACING = 'memory_sign'

/** The statements on the signs of vectors. */
export class SignStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  commit(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }

  async unplaced(limit: number): Promise<readonly UnplacedRow[]> {
    const rows = await this.#db.all`SELECT memory_id, memory_vector.agent_id, model, vector, level, user_id, session_id
      FROM memory_vector JOIN memory_entry ON memory_entry.id = memory_id
      WHERE place IS NULL AND ${isKept} ORDER BY memory_id LIMIT ${limit}`
    return v.parse(v.array(UnplacedRow), rows)
  }
  /** Of the rows of an agent with room the fullest, of those that have so many bytes. */
  async withRoom(agentId: string, model: string, bytes: number): Promise<ChunkRow | undefined> {
    const row = await this.#db.one`SELECT id, version, places FROM memory_sign
      WHERE agent_id = ${agentId} AND model = ${model} AND free > 0 AND length(places) = ${bytes}
      ORDER BY free LIMIT 1`
    return row === undefined ? undefined : v.parse(ChunkRow, row)
  }
  addChunk(agentId: string, model: string, places: Uint8Array): Statement {
    return this.#db.sql`INSERT INTO memory_sign (agent_id, model, version, free, places)
      VALUES (${agentId}, ${model}, 0, ${CHUNK}, ${places})`
  }
  /** Nothing is written for a vector that is another one meanwhile, or gone. */
  setPlace(
    { memory_id: id, model, vector }: UnplacedRow,
    chunk: ChunkRow,
    at: number,
    place: Uint8Array,
  ): readonly Statement[] {
    const number = chunk.id * CHUNK + at
    const [before, after] = [at * place.length, (at + 1) * place.length]
    return [
      {
        ...this.#db.sql`UPDATE memory_vector SET place = ${number}
        WHERE memory_id = ${id} AND model = ${model} AND vector = ${vector} AND place IS NULL
          AND NOT EXISTS (SELECT 1 FROM memory_vector AS other WHERE other.place = ${number})
          AND EXISTS (SELECT 1 FROM memory_sign WHERE id = ${chunk.id})`,
        exclusive: PLACING,
      },
      this.#db.sql`UPDATE memory_sign SET version = version + 1, free = free - 1,
          places = CAST(substr(places, 1, CAST(${before} AS INTEGER)) || ${place} ||
            substr(places, CAST(${after} AS INTEGER) + 1) AS ${this.#bytes()})
        WHERE id = ${chunk.id} AND EXISTS (SELECT 1 FROM memory_vector WHERE memory_id = ${id} AND place = ${number})`,
    ]
  }
  /** What SQLite joins is a text. */
  #bytes(): SqlPart {
    return this.#db.dialect === 'sqlite' ? sqlPart`BLOB` : sqlPart`BYTEA`
  }

  /** The rows of these agents, oldest first. */
  async versions(agentIds: readonly string[], model: string): Promise<readonly Version[]> {
    const row = await this.#db.one`SELECT ${joined(sqlPart`id`, this.#db.dialect)} AS ids,
        ${joined(sqlPart`version`, this.#db.dialect)} AS versions
      FROM (SELECT id, version FROM memory_sign
        WHERE agent_id IN (SELECT key FROM json_each(${idSet(agentIds)})) AND model = ${model} ORDER BY id) AS own`
    const read = v.parse(VersionsRow, row)
    const versions = numbersOf(read.versions)
    return numbersOf(read.ids).map((id, at) => ({ id, version: versions[at] ?? 0 }))
  }
  async chunks(ids: readonly number[]): Promise<readonly ChunkRow[]> {
    const rows = await this.#db.all`SELECT id, version, places FROM memory_sign
      WHERE id IN (SELECT CAST(key AS BIGINT) FROM json_each(${idSet(ids.map(String))}))`
    return v.parse(v.array(ChunkRow), rows)
  }
  /** The vectors at these places. */
  async at(places: readonly number[], model: string): Promise<readonly NearRow[]> {
    const rows = await this.#db.all`SELECT memory_id, model, vector FROM memory_vector
      WHERE place IN (SELECT CAST(key AS BIGINT) FROM json_each(${idSet(places.map(String))})) AND model = ${model}`
    return v.parse(v.array(VectorRow), rows)
  }
  /** Those of these agents that have vectors of another model. */
  async outdated(agentIds: readonly string[], model: string): Promise<readonly string[]> {
    const rows = await this.#db.all`SELECT DISTINCT agent_id FROM memory_sign
      WHERE agent_id IN (SELECT key FROM json_each(${idSet(agentIds)})) AND model <> ${model} AND free < ${CHUNK}`
    return v.parse(v.array(AgentRow), rows).map(({ agent_id: id }) => id)
  }
  /** Rows in which nothing is any more. */
  dropEmpty(): Statement {
    return { ...this.#db.sql`DELETE FROM memory_sign WHERE free = ${CHUNK}`, exclusive: PLACING }
  }
}
