import { newId, toIso } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Triple } from '../extraction/fact.ts'
import type { Entity, GraphScope, GraphStore, NewEntity, Relation } from './store.ts'

export interface GraphSettings {
  readonly max_entities_per_agent: number
  readonly max_relations_per_agent: number
  /** Of the properties of one. */
  readonly max_metadata_bytes: number
  readonly max_graph_depth: number
  readonly max_relations_found: number
}
export interface GraphDeps {
  readonly store: GraphStore
  readonly settings: GraphSettings
  readonly now: () => number
}
/** Whose it is and where it comes from. */
export interface Origin {
  readonly agentId: string
  readonly userId?: string | undefined
  /** The memory that says it; it is forgotten together with that. */
  readonly memoryId?: string | undefined
  readonly labels: readonly string[]
}
export interface RelationQuery {
  readonly source?: string | undefined
  readonly relation?: string | undefined
  readonly target?: string | undefined
  /** Steps from what fits; 1: only that. */
  readonly maxDepth?: number | undefined
}
export interface RelationMatch {
  readonly source: Entity
  readonly relation: Pick<Relation, 'confidence' | 'properties' | 'labels'> & { readonly type: string }
  readonly target: Entity
}
const NAME_CHARS = 200

/** What agents know of people, things and how they belong together. */
export class Graph {
  readonly #deps: GraphDeps
  constructor(deps: GraphDeps) {
    this.#deps = deps
  }

  async addEntity(
    origin: Origin,
    entity: { readonly name: string; readonly type: string; readonly properties?: Readonly<Record<string, unknown>> },
  ): Promise<Entity> {
    const { store } = this.#deps
    const scope = scopeOf(origin)
    const made = toEntity({ properties: {}, ...entity }, { name: 'name', type: 'entity_type' })
    await this.#commit(scope, [made], [], origin.memoryId)
    const found = await store.entityByName(scope, made.nameKey)
    if (!found) throw new Refusal('conflict', `The entity "${entity.name}" was deleted meanwhile`)
    return found
  }

  /** Makes the entities that are not there. Done again, it adds nothing. `also`: statements of the same batch. */
  async addTriples(
    origin: Origin,
    triples: readonly (Triple & {
      readonly confidence?: number
      readonly properties?: Readonly<Record<string, unknown>>
    })[],
    also: readonly Statement[] = [],
  ): Promise<void> {
    const entities = new Map<string, NewEntity>()
    const relations: Omit<Parameters<GraphStore['putRelation']>[1], 'id'>[] = []
    for (const each of triples) {
      const source = toEntity(
        { name: each.subject, type: each.subject_type },
        { name: 'subject', type: 'subject_type' },
      )
      const target = toEntity({ name: each.object, type: each.object_type }, { name: 'object', type: 'object_type' })
      for (const entity of [source, target]) if (!entities.has(entity.nameKey)) entities.set(entity.nameKey, entity)
      relations.push({
        sourceKey: source.nameKey,
        relation: typeName(each.relation, 'relation'),
        targetKey: target.nameKey,
        memoryId: origin.memoryId ?? '',
        confidence: each.confidence ?? 1,
        properties: each.properties ?? {},
        labels: origin.labels,
      })
    }
    await this.#commit(scopeOf(origin), [...entities.values()], relations, origin.memoryId, also)
  }

  /** Relations that fit, and with a depth above 1 those around what was found. Nothing of another person. */
  async query(
    reader: { readonly agentId: string; readonly userId?: string | undefined; readonly all?: boolean },
    { source = '', relation = '', target = '', maxDepth = 1 }: RelationQuery,
  ): Promise<readonly RelationMatch[]> {
    const { store, settings } = this.#deps
    const { max_graph_depth: deepest, max_relations_found: max } = settings
    if (maxDepth > deepest)
      throw new Refusal('invalid_request', `max_depth: at most ${deepest} (plugins.memory.max_graph_depth)`)
    const wanted = {
      sourceKey: source === '' ? '' : keyOf(source, 'source'),
      relation: relation === '' ? '' : typeName(relation, 'relation'),
      targetKey: target === '' ? '' : keyOf(target, 'target'),
    }
    const found = new Map<string, Relation>()
    const seen = new Set<string>()
    let relations = await store.matching(scopeOf(reader), wanted, max, reader.all === true)
    for (let depth = 1; ; depth++) {
      for (const each of relations) {
        const key = `${each.sourceId} ${each.relation} ${each.targetId}`
        if (!found.has(key) && found.size < max) found.set(key, each)
      }
      const next = [...new Set(relations.flatMap(({ sourceId, targetId }) => [sourceId, targetId]))].filter(
        (id) => !seen.has(id),
      )
      for (const id of next) seen.add(id)
      if (depth >= maxDepth || next.length === 0 || found.size >= max) break
      relations = await store.around(next, max)
    }
    const ends = [...new Set([...found.values()].flatMap(({ sourceId, targetId }) => [sourceId, targetId]))]
    const entities = new Map((await store.entities(ends)).map((entity) => [entity.id, entity]))
    return [...found.values()].flatMap(({ sourceId, targetId, relation: type, confidence, properties, labels }) => {
      const [from, to] = [entities.get(sourceId), entities.get(targetId)]
      return from && to ? [{ source: from, relation: { type, confidence, properties, labels }, target: to }] : []
    })
  }

  async #commit(
    scope: GraphScope,
    entities: readonly NewEntity[],
    relations: readonly Omit<Parameters<GraphStore['putRelation']>[1], 'id'>[],
    memoryId = '',
    also: readonly Statement[] = [],
  ): Promise<void> {
    const { store, settings, now } = this.#deps
    const { max_entities_per_agent: maxEntities, max_relations_per_agent: maxRelations } = settings
    for (const { properties } of [...entities, ...relations]) this.#checkProperties(properties)
    const at = toIso(now())
    try {
      await store.commit([
        ...entities.map((entity) => store.putEntity(scope, entity, memoryId, maxEntities, at)),
        ...relations.map((relation) => store.putRelation(scope, { ...relation, id: newId() }, at)),
        ...(relations.length > 0 ? [store.limitRelations(scope, maxRelations)] : []),
        ...also,
      ])
    } catch (error) {
      if (error instanceof Refusal) throw error
      const missing = await Promise.all(entities.map(({ nameKey }) => store.entityByName(scope, nameKey)))
      if (missing.includes(undefined)) throw full(maxEntities, 'entities', error)
      if ((await store.countRelations(scope)) + relations.length > maxRelations)
        throw full(maxRelations, 'relations', error)
      throw error
    }
  }
  #checkProperties(properties: Readonly<Record<string, unknown>>): void {
    const { max_metadata_bytes: max } = this.#deps.settings
    if (Buffer.byteLength(JSON.stringify(properties)) > max)
      throw new Refusal(
        'invalid_request',
        `properties: at most ${max} bytes of JSON (plugins.memory.max_metadata_bytes)`,
      )
  }
}

const full = (max: number, what: 'entities' | 'relations', cause: unknown): Refusal =>
  new Refusal(
    'invalid_request',
    `the graph of the agent has ${max} ${what}, which is the limit (plugins.memory.max_${what}_per_agent)`,
    { cause },
  )

function scopeOf({
  agentId,
  userId = '',
}: {
  readonly agentId: string
  readonly userId?: string | undefined
}): GraphScope {
  return { agentId, userId }
}
/** `fields`: what the caller calls them. With `properties`, also empty ones, it was made for itself. */
function toEntity(
  {
    name,
    type,
    properties,
  }: { readonly name: string; readonly type: string; readonly properties?: Readonly<Record<string, unknown>> },
  fields: { readonly name: string; readonly type: string },
): NewEntity {
  const clean = name.normalize('NFC').replaceAll(/\s+/g, ' ').trim()
  return {
    id: newId(),
    nameKey: keyOf(clean, fields.name),
    name: clean,
    type: typeName(type, fields.type),
    properties: properties ?? {},
    isMade: properties !== undefined,
  }
}
/** The same for a name however it is written. Throws for one without letters and digits. */
function keyOf(name: string, field: string): string {
  const key = name
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
  if (key === '') throw new Refusal('invalid_request', `${field}: expected a name with letters or digits`)
  if (name.length > NAME_CHARS) throw new Refusal('invalid_request', `${field}: at most ${NAME_CHARS} characters`)
  if (!name.isWellFormed() || name.includes('\0'))
    throw new Refusal('invalid_request', `${field}: must be well-formed Unicode without NUL`)
  return key
}
/** `Works At` and `works-at` are `works_at`. */
function typeName(type: string, field: string): string {
  return keyOf(type, field).replaceAll(' ', '_')
}
