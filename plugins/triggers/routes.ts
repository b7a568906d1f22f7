import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { FiringView, HistoryQuery, ListQuery, TriggerBody, TriggerParams, TriggerView } from './body.ts'
import type { Runtime } from './runtime.ts'

export type LazyRuntime = () => Promise<Runtime>

const auth = 'bearer' as const
const errors = ['trigger_not_found'] as const
const MAX_LIMIT = 1_000
const DEFAULT_HISTORY = 50

export function triggerRoutes(runtime: LazyRuntime): readonly AnyRoute[] {
  return [
    listTriggers(runtime),
    addTrigger(runtime),
    readTrigger(runtime),
    changeTrigger(runtime, 'PUT'),
    changeTrigger(runtime, 'PATCH'),
    removeTrigger(runtime),
    listFirings(runtime),
  ]
}
const load = async (runtime: LazyRuntime) => {
  const [{ triggers }, views] = await Promise.all([runtime(), import('./views.ts')])
  return { triggers, ...views }
}
const limitOf = (limit: string | undefined, usual: number): number => Math.min(Number(limit ?? usual), MAX_LIMIT)

function listTriggers(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/triggers',
    summary: 'The triggers, the oldest first',
    description: '`agent_id` shows those of one agent.',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: v.array(TriggerView),
    async handle({ query }) {
      const { triggers, toTrigger } = await load(runtime)
      const { agent_id: agentId, limit, offset } = query
      return (await triggers.list(agentId, limitOf(limit, MAX_LIMIT), Number(offset ?? 0))).map(toTrigger)
    },
  })
}

function addTrigger(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/triggers',
    summary: 'Ask an agent something whenever something happens',
    description:
      '`agent_id` and `pattern` are required. Each event fires the trigger once at most, also over a restart, and ' +
      'exactly once when nothing holds it back: a cool-down, a chain that is too long, an agent that does not run. ' +
      'The history says what did.',
    auth,
    effect: 'lasting',
    cost: 10,
    body: TriggerBody,
    returns: v.object({ trigger_id: v.string(), agent_id: v.string() }),
    status: 201,
    errors: ['agent_not_found', 'workflow_not_found', 'forbidden', 'conflict', 'channel_not_found'],
    idempotent: true,
    example: {
      body: { agent_id: 'assistant', pattern: { agent_spawned: { name_pattern: 'scout-*' } }, max_fires: 10 },
    },
    async handle({ body, effectId }) {
      const { id, agentId } = await (await runtime()).triggers.create(body, effectId)
      return { trigger_id: id, agent_id: agentId }
    },
    async recall(effectId) {
      const trigger = await (await runtime()).triggers.find(effectId)
      return trigger && { trigger_id: trigger.id, agent_id: trigger.agentId }
    },
  })
}

function readTrigger(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/triggers/:id',
    summary: 'Read a trigger',
    auth,
    effect: 'read',
    cost: 2,
    params: TriggerParams,
    returns: TriggerView,
    errors,
    async handle({ params }) {
      const { triggers, toTrigger } = await load(runtime)
      return toTrigger(await triggers.require(params.id))
    },
  })
}

function changeTrigger(runtime: LazyRuntime, method: 'PUT' | 'PATCH'): AnyRoute {
  return defineRoute({
    method,
    path: '/api/triggers/:id',
    summary: method === 'PUT' ? 'Change, enable or disable a trigger' : 'The same as PUT',
    description: 'Fields that are left out stay. Events of the time in which it was disabled do not count.',
    auth,
    effect: 'lasting',
    cost: 10,
    params: TriggerParams,
    body: TriggerBody,
    async shown({ params }) {
      const { triggers, toTrigger, MEASURED } = await load(runtime)
      return { fields: toTrigger(await triggers.require(params.id)), measured: MEASURED }
    },
    returns: v.looseObject({ ...TriggerView.entries, status: v.literal('updated'), trigger_id: v.string() }),
    errors: [...errors, 'agent_not_found', 'workflow_not_found', 'forbidden', 'conflict', 'channel_not_found'],
    example: { body: { enabled: false } },
    async handle({ params: { id }, body, unchanged }) {
      const { triggers, toTrigger } = await load(runtime)
      const changed = unchanged ? await triggers.require(id) : await triggers.change(id, body)
      return { ...toTrigger(changed), status: 'updated' as const, trigger_id: id }
    },
  })
}

function removeTrigger(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/triggers/:id',
    summary: 'Remove a trigger and its history',
    auth,
    effect: 'lasting',
    cost: 5,
    params: TriggerParams,
    returns: v.object({ status: v.literal('removed'), trigger_id: v.string() }),
    errors,
    async handle({ params: { id } }) {
      await (await runtime()).triggers.remove(id)
      return { status: 'removed' as const, trigger_id: id }
    },
  })
}

function listFirings(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/triggers/:id/history',
    summary: 'What a trigger matched, the newest event first',
    description: 'Each with its result, or with the reason for which it was held back.',
    auth,
    effect: 'read',
    cost: 5,
    params: TriggerParams,
    query: HistoryQuery,
    returns: v.object({ firings: v.array(FiringView) }),
    errors,
    async handle({ params, query: { before, limit } }) {
      const { triggers, toFiring } = await load(runtime)
      const until = Number(before ?? Number.MAX_SAFE_INTEGER)
      return { firings: (await triggers.history(params.id, until, limitOf(limit, DEFAULT_HISTORY))).map(toFiring) }
    },
  })
}
