import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool, ToolCallContext } from 'svc/sdk'
import type { Graph, RelationMatch } from './service.ts'

/** An entity may have its name from a page that was read in another session (security facts 1.2). */
const EXTERNAL = ['ExternalNetwork']
const name = (says: string) => v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(200), v.description(says))
const properties = v.optional(v.pipe(v.record(v.string(), v.unknown()), v.description('More about it')), {})

/** `check` throws unless the manifest of the agent permits it. */
export type GraphAccess = (agentId: string, access: 'read' | 'write') => Promise<Graph>

export function graphTools(open: GraphAccess): readonly AnyTool[] {
  const originOf = ({ agentId, user, labels = [] }: ToolCallContext) => ({ agentId, userId: user, labels })
  const addEntity = defineTool({
    name: 'knowledge_add_entity',
    risk: 'write',
    description:
      'Add a person, organization, project, place or thing to what is known. One of the same name is changed.',
    input: v.object({
      name: name('Its name'),
      entity_type: name('person, organization, project, concept, event, location, document, tool, or another word'),
      properties,
    }),
    async run({ name: called, entity_type: type, properties: more }, call) {
      const graph = await open(call.agentId, 'write')
      const entity = await graph.addEntity(originOf(call), { name: called, type, properties: more })
      return JSON.stringify({ id: entity.id, name: entity.name, entity_type: entity.type })
    },
  })
  const addRelation = defineTool({
    name: 'knowledge_add_relation',
    risk: 'write',
    description:
      'Say how two things belong together, such as Ann works_at Acme. Things that are not known yet are added.',
    input: v.object({
      source: name('The name of the first thing'),
      relation: name(
        'works_at, knows_about, related_to, depends_on, owned_by, created_by, located_in, part_of, uses, produces, or another word',
      ),
      target: name('The name of the second thing'),
      confidence: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1)), 1),
      properties,
    }),
    async run({ source, relation, target, confidence, properties: more }, call) {
      const graph = await open(call.agentId, 'write')
      const triple = { subject: source, subject_type: 'concept', relation, object: target, object_type: 'concept' }
      await graph.addTriples(originOf(call), [{ ...triple, confidence, properties: more }])
      return `Noted: ${source} ${relation} ${target}.`
    },
  })
  const query = defineTool({
    name: 'knowledge_query',
    risk: 'read',
    labels: EXTERNAL,
    description: 'Find how things belong together, by the first, the second, or the kind of relation. Answers JSON.',
    input: v.object({
      source: v.optional(name('The name of the first thing')),
      relation: v.optional(name('The kind of relation')),
      target: v.optional(name('The name of the second thing')),
      max_depth: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.description('Steps from what fits')), 1),
    }),
    async run({ source, relation, target, max_depth: maxDepth }, { agentId, user }) {
      const graph = await open(agentId, 'read')
      const matches = await graph.query({ agentId, userId: user }, { source, relation, target, maxDepth })
      return JSON.stringify({ matches: matches.map(toView), count: matches.length })
    },
  })
  return [addEntity, addRelation, query]
}

/** API facts 4.3. */
export function toView({ source, relation, target }: RelationMatch) {
  const entity = ({ id, name: called, type, properties: more }: RelationMatch['source']) => ({
    id,
    name: called,
    entity_type: type,
    properties: more,
  })
  const { type, confidence, properties: about } = relation
  return { source: entity(source), relation: { type, confidence, properties: about }, target: entity(target) }
}
