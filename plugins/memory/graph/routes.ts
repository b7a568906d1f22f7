import * as v from 'valibot'
import { defineRoute, nameOf } from 'svc/sdk'
import type { AnyRoute, Principal } from 'svc/sdk'
import { AgentParams } from '../../agents/contract.ts'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import { readerOf } from '../entries/reader.ts'
import type { Graph } from './service.ts'
import { toView } from './tools.ts'

const name = v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(200))
const Entity = v.object({
  id: v.string(),
  name: v.string(),
  entity_type: v.string(),
  properties: v.record(v.string(), v.unknown()),
})
const Matches = v.object({
  matches: v.array(
    v.object({
      source: Entity,
      relation: v.object({ type: v.string(), confidence: v.number(), properties: v.record(v.string(), v.unknown()) }),
      target: Entity,
    }),
  ),
  count: v.number(),
})
const depth = v.pipe(v.string(), v.regex(/^[1-9]\d?$/, 'Expected a number of steps from 1'), v.transform(Number))
const Query = v.object({
  source: v.optional(name),
  relation: v.optional(name),
  target: v.optional(name),
  max_depth: v.optional(depth),
})
const NewTriple = v.strictObject(
  {
    subject: name,
    subject_type: v.optional(name, 'concept'),
    relation: name,
    object: name,
    object_type: v.optional(name, 'concept'),
    confidence: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1)), 1),
  },
  ({ expected, received }) =>
    `Expected ${expected} but received ${received}: a relation is {subject, relation, object}`,
)
const MAX_TRIPLES = 500

/** Whose graph a caller sees: the operator everybody's, anybody else their own. */
function scopeOf(principal: Principal) {
  const reader = readerOf(principal)
  return reader.kind === 'person' ? { userId: reader.userId } : { all: true, userId: undefined }
}

/** Interface 4.3, `…/relations`. */
export function graphRoutes(
  { agents, audit }: { readonly agents: Pick<Agents, 'require'>; readonly audit: Pick<Audit, 'entry'> },
  open: () => Promise<Graph>,
): readonly AnyRoute[] {
  const list = defineRoute({
    method: 'GET',
    path: '/api/memory/agents/:id/relations',
    summary: 'How the things that an agent knows belong together',
    description:
      '`source`, `relation` and `target` narrow it down; `max_depth` adds what is that many steps away. ' +
      'A relation goes with the last memory that says it.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: Query,
    returns: Matches,
    errors: ['agent_not_found'],
    async handle({ params, query, principal }) {
      const { id: agentId } = await agents.require(params.id)
      const { max_depth: maxDepth, ...wanted } = query
      const found = await (await open()).query({ agentId, ...scopeOf(principal) }, { ...wanted, maxDepth })
      return { matches: found.map(toView), count: found.length }
    },
  })
  const add = defineRoute({
    method: 'POST',
    path: '/api/memory/agents/:id/relations',
    summary: 'Tell an agent how things belong together',
    description:
      'The body is a list of relations; things that are not known yet are added. Sending it again adds nothing.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: AgentParams,
    body: v.pipe(v.array(NewTriple), v.minLength(1), v.maxLength(MAX_TRIPLES)),
    returns: v.object({ agent_id: v.string(), triples_processed: v.number() }),
    errors: ['agent_not_found'],
    example: {
      body: [
        { subject: 'Ann', subject_type: 'person', relation: 'works_at', object: 'Acme', object_type: 'organization' },
      ],
    },
    async handle({ params, body, principal }) {
      const { id: agentId } = await agents.require(params.id)
      const { userId } = scopeOf(principal)
      const many = body.length === 1 ? 'a relation' : `${body.length} relations`
      const record = audit.entry({
        event: 'memory_access',
        agentId,
        details: `${many} added by ${nameOf(principal)}`,
      })
      await (await open()).addTriples({ agentId, userId, labels: [] }, body, [record])
      return { agent_id: agentId, triples_processed: body.length }
    },
  })
  return [list, add]
}
