import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute, Principal } from 'svc/sdk'
import { AgentParams } from '../../agents/contract.ts'
import type { OpenMemories } from '../entries/open.ts'
import * as schema from '../schema.ts'
import type { Report } from '../composition.ts'
import type { ConfigChangeDeps } from './config-change.ts'
import type { MemoryRequests } from './requests.ts'

type Requests = (input: { readonly principal: Principal }) => Promise<MemoryRequests>

const auth = 'bearer' as const
const unknownAgent = ['agent_not_found'] as const
const reads = { auth, effect: 'read', cost: 5 } as const
const writes = { auth, effect: 'lasting', cost: 5 } as const
const sweeps = { auth, effect: 'lasting', cost: 50 } as const

const Cleared = v.object({ status: v.literal('deleted'), agent_id: v.string(), deleted: v.number() })

/** Interface 4.3 but the keys of agents and the relations. A signed-in user sees what is kept for them. */
export function memoryRoutes(
  memories: () => Promise<OpenMemories>,
  report: Report,
  changes: ConfigChangeDeps,
): readonly AnyRoute[] {
  const requests: Requests = async ({ principal }) => {
    const [{ MemoryRequests }, opened] = await Promise.all([import('./requests.ts'), memories()])
    return new MemoryRequests(opened, principal)
  }
  return [
    ...sharedRoutes(requests, memories, report),
    ...summaryRoutes(requests, changes),
    ...userRoutes(requests),
    ...upkeepRoutes(requests),
    ...itemRoutes(requests),
    ...agentRoutes(requests),
  ]
}

function sharedRoutes(requests: Requests, memories: () => Promise<OpenMemories>, report: Report): readonly AnyRoute[] {
  return [
    defineRoute({
      ...reads,
      method: 'GET',
      path: '/api/memory',
      summary: 'The memories of all agents, the newest first',
      query: schema.ListQuery,
      returns: v.object({ ...schema.Listed.entries, proactive_enabled: v.boolean() }),
      handle: async (input) => ({ ...(await (await requests(input)).list(input.query)), proactive_enabled: true }),
    }),
    defineRoute({
      ...writes,
      method: 'POST',
      path: '/api/memory',
      summary: 'Add a memory',
      description:
        '`content` is known from whoever adds it and counts as their own word. `messages` instead are a conversation: ' +
        'what their `user` states is found as after a turn, at the cost of the model that the agent has for it.',
      body: schema.NewEntry,
      returns: v.object({ added: v.number(), memories: v.array(schema.EntryView) }),
      status: 201,
      errors: ['agent_not_found', 'memory_not_found', 'payload_too_large'],
      example: { body: { content: 'Prefers trains to planes', tags: ['travel'] } },
      idempotent: true,
      keepsAnswer: false,
      costOf: ({ messages = [] }) => messages.length * 25,
      handle: async (input) => (await requests(input)).add(input.body, input.effectId, report, input.signal),
      async recall(effectId) {
        const [{ recall }, opened] = await Promise.all([import('./requests.ts'), memories()])
        return recall(opened, effectId)
      },
    }),
    defineRoute({
      ...reads,
      method: 'GET',
      path: '/api/memory/search',
      summary: 'Search memories by words and meaning',
      description: 'An empty list means that nothing is known that fits.',
      query: schema.SearchQuery,
      returns: schema.Found,
      errors: unknownAgent,
      handle: async (input) => (await requests(input)).search(input.query, input.query.agent_id, input.signal),
    }),
  ]
}
function summaryRoutes(requests: Requests, changes: ConfigChangeDeps): readonly AnyRoute[] {
  return [
    defineRoute({
      ...reads,
      method: 'GET',
      path: '/api/memory/config',
      summary: 'The settings of memory',
      description:
        'They are changed with PATCH or in `[plugins.memory]` of the configuration file, and for an agent in its ' +
        'manifest.',
      returns: schema.ConfigView,
      handle: async (input) => (await requests(input)).config(),
    }),
    defineRoute({
      ...writes,
      method: 'PATCH',
      path: '/api/memory/config',
      summary: 'Change settings of memory',
      description:
        'All are checked before the first is written into config.toml. Takes back what GET shows. What bounds the store, says what is ' +
        'forgotten or who makes the vectors is set in the file only, and is refused when it differs.',
      body: schema.ConfigChange,
      returns: schema.ConfigChanged,
      errors: ['forbidden', 'conflict'],
      example: { body: { proactive_memory: { max_retrieve: 8 } } },
      async handle(input) {
        const { changeConfig } = await import('./config-change.ts')
        return changeConfig(changes, (await requests(input)).config(), input.body)
      },
    }),
    defineRoute({
      ...reads,
      method: 'GET',
      path: '/api/memory/stats',
      summary: 'How many memories there are',
      returns: schema.Stats,
      handle: async (input) => (await requests(input)).stats(),
    }),
  ]
}

/** Whether somebody who signed in asks for what is kept for them. */
const isOwn = ({ kind, subject }: { readonly kind: string; readonly subject?: string }, user: string): boolean =>
  kind === 'user' && subject !== undefined && (user === 'me' || user === subject)

function userRoutes(requests: Requests): readonly AnyRoute[] {
  return [
    defineRoute({
      ...reads,
      method: 'GET',
      path: '/api/memory/users',
      summary: 'For whom memories are kept',
      description:
        '`me` is the id under which memories are kept for the caller: null with the API key and for a paired device. ' +
        'Somebody who signed in sees nobody else.',
      query: schema.PageQuery,
      returns: schema.Users,
      handle: async (input) => (await requests(input)).users(input.query),
    }),
    defineRoute({
      ...reads,
      method: 'GET',
      path: '/api/memory/user/:user_id',
      summary: 'The memories that are kept for a user',
      params: schema.UserParams,
      query: schema.ListQuery,
      returns: schema.Listed,
      handle: async (input) => (await requests(input)).list(input.query, { user: input.params.user_id }),
    }),
    defineRoute({
      ...reads,
      cost: 20,
      method: 'GET',
      path: '/api/memory/user/:user_id/export',
      summary: 'Export what is kept for a user',
      params: schema.UserParams,
      returns: schema.UserExport,
      handle: async (input) => (await requests(input)).exportedOf(input.params.user_id),
    }),
    defineRoute({
      ...writes,
      cost: 50,
      method: 'DELETE',
      path: '/api/memory/user/:user_id',
      summary: 'Delete what is kept for a user, in all agents',
      description: 'Somebody who signed in may delete what is kept for them: `me`.',
      effectOf: ({ principal, params }) => (isOwn(principal, params.user_id) ? 'own' : 'lasting'),
      params: schema.UserParams,
      returns: v.object({ status: v.literal('deleted'), user_id: v.string(), deleted: v.number() }),
      handle: async (input) => (await requests(input)).forgetUser(input.params.user_id),
    }),
  ]
}

function upkeepRoutes(requests: Requests): readonly AnyRoute[] {
  return [
    defineRoute({
      ...sweeps,
      method: 'POST',
      path: '/api/memory/cleanup',
      summary: 'Forget what has expired',
      returns: v.object({ cleaned_up: v.literal(true), deleted_count: v.number(), session_ttl_hours: v.number() }),
      handle: async (input) => (await requests(input)).cleanup(),
    }),
    defineRoute({
      ...sweeps,
      method: 'POST',
      path: '/api/memory/decay',
      summary: 'Let the strength of memories fade by the time since their last use',
      returns: v.object({ decayed: v.literal(true), decay_rate: v.number() }),
      handle: async (input) => (await requests(input)).decay(),
    }),
    defineRoute({
      ...writes,
      method: 'POST',
      path: '/api/memory/bulk-delete',
      summary: 'Delete memories',
      description: '`failed` is how many of them are not there.',
      body: schema.Ids,
      returns: v.object({ deleted: v.number(), failed: v.number(), total: v.number() }),
      handle: async (input) => (await requests(input)).forgetAll(input.body.ids),
    }),
  ]
}

function itemRoutes(requests: Requests): readonly AnyRoute[] {
  const of = { params: schema.MemoryParams, errors: ['memory_not_found'] as const }
  return [
    defineRoute({
      ...reads,
      ...of,
      method: 'GET',
      path: '/api/memory/items/:memory_id',
      summary: 'Read a memory',
      returns: schema.EntryView,
      handle: async (input) => (await requests(input)).find(input.params.memory_id),
    }),
    defineRoute({
      ...writes,
      ...of,
      method: 'PUT',
      path: '/api/memory/items/:memory_id',
      summary: 'Change the content of a memory',
      description: 'The former content is in its history.',
      body: schema.Change,
      returns: v.object({ updated: v.literal(true), memory_id: v.string() }),
      errors: ['memory_not_found', 'conflict', 'payload_too_large'],
      handle: async (input) => (await requests(input)).update(input.params.memory_id, input.body.content),
    }),
    defineRoute({
      ...writes,
      ...of,
      method: 'DELETE',
      path: '/api/memory/items/:memory_id',
      summary: 'Delete a memory with its history',
      description: 'Somebody who signed in may delete what is kept for them.',
      effectOf: ({ principal }) => (principal.kind === 'user' ? 'own' : 'lasting'),
      returns: v.object({ status: v.literal('deleted'), memory_id: v.string() }),
      handle: async (input) => (await requests(input)).forget(input.params.memory_id),
    }),
    defineRoute({
      ...reads,
      ...of,
      method: 'GET',
      path: '/api/memory/items/:memory_id/history',
      summary: 'The former contents of a memory, the oldest first, and the present one',
      description: 'Of a deleted one it says when it was deleted and by whom, and nothing of its content.',
      returns: schema.HistoryView,
      handle: async (input) => (await requests(input)).history(input.params.memory_id),
    }),
  ]
}

function agentRoutes(requests: Requests): readonly AnyRoute[] {
  return [...agentReads(requests), ...agentWrites(requests)]
}
function agentReads(requests: Requests): readonly AnyRoute[] {
  const of = { ...reads, params: AgentParams, errors: unknownAgent }
  return [
    defineRoute({
      ...of,
      method: 'GET',
      path: '/api/memory/agents/:id',
      summary: 'The memories of an agent, the newest first',
      query: schema.ListQuery,
      returns: schema.Listed,
      handle: async (input) => (await requests(input)).list(input.query, { agentId: input.params.id }),
    }),
    defineRoute({
      ...of,
      method: 'GET',
      path: '/api/memory/agents/:id/search',
      summary: 'Search the memories of an agent',
      query: schema.AgentSearchQuery,
      returns: schema.Found,
      handle: async (input) => (await requests(input)).search(input.query, input.params.id, input.signal),
    }),
    defineRoute({
      ...of,
      method: 'GET',
      path: '/api/memory/agents/:id/stats',
      summary: 'How many memories an agent has',
      returns: schema.Stats,
      handle: async (input) => (await requests(input)).stats(input.params.id),
    }),
    defineRoute({
      ...of,
      method: 'GET',
      path: '/api/memory/agents/:id/count',
      summary: 'Count the memories of an agent',
      query: schema.CountQuery,
      returns: v.object({ agent_id: v.string(), count: v.number(), level: v.nullable(schema.level) }),
      handle: async (input) => (await requests(input)).count(input.params.id, input.query.level),
    }),
    defineRoute({
      ...of,
      method: 'GET',
      path: '/api/memory/agents/:id/duplicates',
      summary: 'Memories of an agent that say the same',
      returns: v.object({ duplicate_groups: v.number(), groups: v.array(v.array(schema.EntryView)) }),
      handle: async (input) => (await requests(input)).duplicates(input.params.id),
    }),
    defineRoute({
      ...of,
      method: 'GET',
      path: '/api/memory/agents/:id/export',
      summary: 'Export the memories of an agent',
      returns: schema.AgentExport,
      handle: async (input) => (await requests(input)).exported(input.params.id),
    }),
  ]
}
function agentWrites(requests: Requests): readonly AnyRoute[] {
  const of = { ...writes, params: AgentParams, errors: unknownAgent }
  return [
    defineRoute({
      ...of,
      method: 'DELETE',
      path: '/api/memory/agents/:id',
      summary: 'Delete all memories of an agent, its notes too',
      returns: Cleared,
      handle: async (input) => (await requests(input)).clear(input.params.id),
    }),
    defineRoute({
      ...of,
      method: 'DELETE',
      path: '/api/memory/agents/:id/level/:level',
      summary: 'Delete the memories of an agent at one level',
      params: schema.LevelParams,
      returns: Cleared,
      handle: async (input) => (await requests(input)).clear(input.params.id, input.params.level),
    }),
    defineRoute({
      ...of,
      cost: 50,
      method: 'POST',
      path: '/api/memory/agents/:id/consolidate',
      summary: 'Keep the newest of the memories of an agent that say the same',
      returns: v.object({ consolidated: v.literal(true), merged_count: v.number() }),
      handle: async (input) => (await requests(input)).consolidate(input.params.id),
    }),
    defineRoute({
      ...of,
      cost: 50,
      method: 'POST',
      path: '/api/memory/agents/:id/import',
      summary: 'Add memories to an agent',
      description:
        'Accepts an export. They count as known from elsewhere, and as nobody’s own word. Their times are kept; ids, ' +
        'sources and former contents are not, unless the export is sent with `restore: true`: then all of it comes ' +
        'back, also what was deleted since, and what is there already is not written over.',
      body: schema.Import,
      returns: schema.Imported,
      errors: ['agent_not_found', 'payload_too_large', 'conflict'],
      example: { body: [{ content: 'Prefers trains to planes', level: 'agent' }] },
      handle: async (input) => (await requests(input)).imported(input.params.id, input.body),
    }),
  ]
}
