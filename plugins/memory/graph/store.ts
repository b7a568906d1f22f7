import * as v from 'valibot'
import { jsonColumn, numberColumn, RowReader } from 'svc/internal'
import { sqlPart } from 'svc/sdk'
import type { Logger, PluginDatabase, SqlPart, Statement } from 'svc/sdk'
import { DELETION, idSet } from '../store.ts'

const Properties = jsonColumn(v.record(v.string(), v.unknown()))
const EntityRow = v.pipe(
  v.object({ id: v.string(), name: v.string(), entity_type: v.string(), properties: Properties }),
  v.transform(({ entity_type: type, ...rest }) => ({ ...rest, type })),
)
export type Entity = v.InferOutput<typeof EntityRow>
const RelationRow = v.pipe(
  v.object({
    id: v.string(),
    source_id: v.string(),
    relation: v.string(),
    target_id: v.string(),
    confidence: numberColumn,
    memory_id: v.string(),
    properties: Properties,
    labels: jsonColumn(v.array(v.string())),
  }),
  v.transform(({ source_id: sourceId, target_id: targetId, memory_id: memoryId, ...rest }) => ({
    ...rest,
    sourceId,
    targetId,
    memoryId,
  })),
)
export type Relation = v.InferOutput<typeof RelationRow>

/** Whose graph: that of an agent for one person; `userId` is empty for the owner of the daemon. */
export interface GraphScope {
  readonly agentId: string
  readonly userId: string
}
export interface NewEntity {
  readonly id: string
  readonly nameKey: string
  readonly name: string
  readonly type: string
  readonly properties: Readonly<Record<string, unknown>>
  readonly isMade: boolean
}
export interface NewRelation {
  readonly id: string
  readonly sourceKey: string
  readonly relation: string
  readonly targetKey: string
  readonly memoryId: string
  readonly confidence: number
  readonly properties: Readonly<Record<string, unknown>>
  readonly labels: readonly string[]
}

/** Whether an agent has a memory, or none is meant. */
const isThere = (memoryId: string, agentId: string): SqlPart =>
  memoryId === ''
    ? sqlPart`1 = 1`
    : sqlPart`EXISTS (SELECT 1 FROM memory_entry
        WHERE memory_entry.id = ${memoryId} AND memory_entry.agent_id = ${agentId})`

/** Every statement on entities and relations. A relation whose memory is deleted or superseded is not read. */
export class GraphStore {
  readonly #db: PluginDatabase
  readonly #entities: RowReader<typeof EntityRow>
  readonly #relations: RowReader<typeof RelationRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#entities = new RowReader({ table: 'memory_entity', key: ['id'], schema: EntityRow, log })
    this.#relations = new RowReader({ table: 'memory_relation', key: ['id'], schema: RelationRow, log })
  }

  async commit(statements: readonly Statement[]): Promise<void> {
    if (statements.length > 0) await this.#db.batch(statements)
  }

  /**
   * One that is there keeps its name; its type and properties are replaced when somebody makes it by itself. `memoryId`:
   * the memory that speaks of it; when that was deleted meanwhile, nothing is written.
   */
  putEntity({ agentId, userId }: GraphScope, entity: NewEntity, memoryId: string, max: number, at: string): Statement {
    const { id, nameKey, name, type, properties, isMade } = entity
    // With too many of them the name becomes NULL, which the column refuses, so that the whole batch fails.
    return {
      ...this.#db.sql`INSERT INTO memory_entity
        (id, agent_id, user_id, name_key, name, entity_type, properties, is_made, created_at)
      SELECT CAST(${id} AS TEXT), CAST(${agentId} AS TEXT), CAST(${userId} AS TEXT), CAST(${nameKey} AS TEXT),
        CASE WHEN EXISTS (SELECT 1 FROM memory_entity
            WHERE agent_id = ${agentId} AND user_id = ${userId} AND name_key = ${nameKey})
          OR (SELECT COUNT(*) FROM memory_entity WHERE agent_id = ${agentId}) < ${max} THEN CAST(${name} AS TEXT) END,
        CAST(${type} AS TEXT), CAST(${JSON.stringify(properties)} AS TEXT), CAST(${Number(isMade)} AS INTEGER),
        CAST(${at} AS TEXT)
      WHERE ${isThere(memoryId, agentId)}
      ON CONFLICT (agent_id, user_id, name_key) DO UPDATE SET
        entity_type = CASE WHEN excluded.is_made = 1 THEN excluded.entity_type ELSE memory_entity.entity_type END,
        properties = CASE WHEN excluded.is_made = 1 THEN excluded.properties ELSE memory_entity.properties END,
        is_made = CASE WHEN excluded.is_made = 1 THEN 1 ELSE memory_entity.is_made END`,
      exclusive: `memory_entity ${agentId}`,
    }
  }
  /**
   * Between entities that are there; writes nothing for a memory that was deleted meanwhile. Said again without properties
   * it keeps them.
   */
  putRelation({ agentId, userId }: GraphScope, relation: NewRelation, at: string): Statement {
    const { id, sourceKey, targetKey, memoryId, confidence } = relation
    const statement = this.#db
      .sql`INSERT INTO memory_relation (id, agent_id, user_id, source_id, relation, target_id, memory_id,
        confidence, properties, labels, created_at)
      SELECT CAST(${id} AS TEXT), CAST(${agentId} AS TEXT), CAST(${userId} AS TEXT), source.id,
        CAST(${relation.relation} AS TEXT), target.id, CAST(${memoryId} AS TEXT), CAST(${confidence} AS DOUBLE PRECISION),
        CAST(${JSON.stringify(relation.properties)} AS TEXT), CAST(${JSON.stringify(relation.labels)} AS TEXT),
        CAST(${at} AS TEXT)
      FROM memory_entity AS source, memory_entity AS target
      WHERE source.agent_id = ${agentId} AND source.user_id = ${userId} AND source.name_key = ${sourceKey}
        AND target.agent_id = ${agentId} AND target.user_id = ${userId} AND target.name_key = ${targetKey}
        AND ${isThere(memoryId, agentId)}
      ON CONFLICT (agent_id, user_id, source_id, relation, target_id, memory_id) DO UPDATE SET
        confidence = excluded.confidence, labels = excluded.labels, properties = CASE
          WHEN excluded.properties = '{}' THEN memory_relation.properties ELSE excluded.properties END`
    // A deletion that is not committed yet could not be seen here.
    return memoryId === '' ? statement : { ...statement, exclusive: DELETION }
  }

  /** Behind the relations of a batch: makes it fail when there are too many, by a NULL that the column refuses. */
  limitRelations({ agentId }: GraphScope, max: number): Statement {
    return {
      ...this.#db.sql`UPDATE memory_relation SET confidence = NULL WHERE agent_id = ${agentId}
        AND (SELECT COUNT(*) FROM memory_relation AS other WHERE other.agent_id = ${agentId}) > ${max}`,
      exclusive: `memory_relation ${agentId}`,
    }
  }
  async countRelations({ agentId }: GraphScope): Promise<number> {
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM memory_relation WHERE agent_id = ${agentId}`
    return v.parse(v.object({ count: numberColumn }), row).count
  }

  async entityByName({ agentId, userId }: GraphScope, nameKey: string): Promise<Entity | undefined> {
    return this.#entities.one(
      await this.#db.one`SELECT id, name, entity_type, properties FROM memory_entity
        WHERE agent_id = ${agentId} AND user_id = ${userId} AND name_key = ${nameKey}`,
    )
  }
  async entities(ids: readonly string[]): Promise<readonly Entity[]> {
    if (ids.length === 0) return []
    return this.#entities.all(
      await this.#db.all`SELECT id, name, entity_type, properties FROM memory_entity
        WHERE id IN (SELECT key FROM json_each(${idSet(ids)}))`,
    )
  }
  /** Relations that fit, the surest first. An empty name fits all. `all`: of every person, for the operator. */
  async matching(
    { agentId, userId }: GraphScope,
    {
      sourceKey,
      relation,
      targetKey,
    }: { readonly sourceKey: string; readonly relation: string; readonly targetKey: string },
    limit: number,
    all: boolean,
  ): Promise<readonly Relation[]> {
    return this.#relations.all(
      await this.#db.all`SELECT id, source_id, relation, target_id, confidence, memory_id, properties, labels
        FROM memory_relation
        WHERE memory_relation.agent_id = ${agentId} AND (${Number(all)} = 1 OR memory_relation.user_id = ${userId})
          AND (${relation} = '' OR relation = ${relation})
          AND (${sourceKey} = '' OR source_id IN
            (SELECT id FROM memory_entity WHERE agent_id = ${agentId} AND name_key = ${sourceKey}))
          AND (${targetKey} = '' OR target_id IN
            (SELECT id FROM memory_entity WHERE agent_id = ${agentId} AND name_key = ${targetKey}))
          AND (memory_id = '' OR EXISTS (SELECT 1 FROM memory_entry
            WHERE memory_entry.id = memory_relation.memory_id AND memory_entry.superseded_by = ''))
        ORDER BY confidence DESC, memory_relation.id LIMIT ${limit}`,
    )
  }
  /** Relations of these entities, in both directions. */
  async around(ids: readonly string[], limit: number): Promise<readonly Relation[]> {
    const set = idSet(ids)
    return this.#relations.all(
      await this.#db.all`SELECT id, source_id, relation, target_id, confidence, memory_id, properties, labels
        FROM memory_relation
        WHERE (source_id IN (SELECT key FROM json_each(${set})) OR target_id IN (SELECT key FROM json_each(${set})))
          AND (memory_id = '' OR EXISTS (SELECT 1 FROM memory_entry
            WHERE memory_entry.id = memory_relation.memory_id AND memory_entry.superseded_by = ''))
        ORDER BY confidence DESC, memory_relation.id LIMIT ${limit}`,
    )
  }

  /** Everything that is kept for a person, in all agents. */
  ofUserForgotten(userId: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM memory_relation WHERE user_id = ${userId}`,
      this.#db.sql`DELETE FROM memory_entity WHERE user_id = ${userId}`,
    ]
  }
}

/**
 * For the batch that deletes memories: takes away what only they say, and the things that nothing else speaks of.
 * `ids`: an object of JSON with the ids as its names.
 */
export function relationsOfForgotten(db: PluginDatabase, ids: string): readonly Statement[] {
  return [
    db.sql`DELETE FROM memory_entity WHERE is_made = 0
      AND id IN (SELECT source_id FROM memory_relation WHERE memory_id IN (SELECT key FROM json_each(${ids}))
        UNION SELECT target_id FROM memory_relation WHERE memory_id IN (SELECT key FROM json_each(${ids})))
      AND NOT EXISTS (SELECT 1 FROM memory_relation AS other WHERE other.agent_id = memory_entity.agent_id
        AND other.user_id = memory_entity.user_id AND other.source_id = memory_entity.id
        AND other.memory_id NOT IN (SELECT key FROM json_each(${ids})))
      AND NOT EXISTS (SELECT 1 FROM memory_relation AS other WHERE other.target_id = memory_entity.id
        AND other.memory_id NOT IN (SELECT key FROM json_each(${ids})))`,
    db.sql`DELETE FROM memory_relation WHERE memory_id IN (SELECT key FROM json_each(${ids}))`,
  ]
}
/** Everything of an agent, what was added by hand too. */
export function graphOfAgent(db: PluginDatabase, agentId: string): readonly Statement[] {
  return [
    db.sql`DELETE FROM memory_relation WHERE agent_id = ${agentId}`,
    db.sql`DELETE FROM memory_entity WHERE agent_id = ${agentId}`,
  ]
}
