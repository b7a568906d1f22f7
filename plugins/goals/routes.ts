import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { GoalFields, GoalParams, GoalView, ListQuery, NewGoal } from './schema.ts'
import type { Goals } from './service.ts'

export type LazyGoals = () => Promise<Goals>

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const auth = 'bearer' as const
const errors = ['goal_not_found'] as const

/** Interface 4.10, `/api/goals`. */
export function goalRoutes(goals: LazyGoals): readonly AnyRoute[] {
  return [listGoals(goals), addGoal(goals), readGoal(goals), changeGoal(goals), removeGoal(goals), listChildren(goals)]
}
const load = async (goals: LazyGoals) => {
  const [opened, { toView }] = await Promise.all([goals(), import('./row.ts')])
  return { opened, toView }
}

function listGoals(goals: LazyGoals): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/goals',
    summary: 'The goals, the oldest first',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: v.object({ items: v.array(GoalView), total: v.number(), offset: v.number(), limit: v.number() }),
    async handle({ query }) {
      const { opened, toView } = await load(goals)
      const limit = Math.min(Number(query.limit ?? DEFAULT_LIMIT), MAX_LIMIT)
      const offset = Number(query.offset ?? 0)
      const filter = { status: query.status, agentId: query.agent_id, roots: query.roots === 'true' }
      const found = await opened.list(filter, limit, offset)
      return { items: found.goals.map(toView), total: found.total, offset, limit }
    },
  })
}

function addGoal(goals: LazyGoals): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/goals',
    summary: 'Make a goal',
    description: '`parent_id` makes it a sub-goal. Only `title` is required.',
    auth,
    effect: 'lasting',
    cost: 5,
    body: NewGoal,
    returns: GoalView,
    status: 201,
    errors: ['goal_not_found', 'agent_not_found'],
    idempotent: true,
    keepsAnswer: false,
    example: { body: { title: 'Publish the report', due_at: '2026-12-31T18:00:00Z' } },
    async handle({ body, effectId }) {
      const { opened, toView } = await load(goals)
      return toView(await opened.create(body, { id: effectId }))
    },
    async recall(effectId) {
      const { opened, toView } = await load(goals)
      const goal = await opened.find(effectId)
      return goal && toView(goal)
    },
  })
}

function readGoal(goals: LazyGoals): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/goals/:id',
    summary: 'Read a goal',
    auth,
    effect: 'read',
    cost: 2,
    params: GoalParams,
    returns: GoalView,
    errors,
    async handle({ params }) {
      const { opened, toView } = await load(goals)
      return toView(await opened.require(params.id))
    },
  })
}

function changeGoal(goals: LazyGoals): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/goals/:id',
    summary: 'Change a goal',
    description: 'Fields that are left out stay; `null` removes the agent, the parent or the due date.',
    auth,
    effect: 'lasting',
    cost: 5,
    params: GoalParams,
    body: GoalFields,
    async shown({ params }) {
      const { opened, toView } = await load(goals)
      return { fields: toView(await opened.require(params.id)) }
    },
    returns: GoalView,
    errors: ['goal_not_found', 'agent_not_found', 'conflict'],
    example: { body: { status: 'in_progress', progress: 30 } },
    async handle({ params, body, unchanged }) {
      const { opened, toView } = await load(goals)
      return toView(unchanged ? await opened.require(params.id) : await opened.change(params.id, body))
    },
  })
}

function removeGoal(goals: LazyGoals): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/goals/:id',
    summary: 'Delete a goal with everything below it',
    auth,
    effect: 'lasting',
    cost: 5,
    params: GoalParams,
    returns: v.object({ status: v.literal('deleted'), goal_id: v.string(), deleted: v.number() }),
    errors,
    async handle({ params: { id } }) {
      return { status: 'deleted' as const, goal_id: id, deleted: await (await goals()).remove(id) }
    },
  })
}

function listChildren(goals: LazyGoals): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/goals/:id/children',
    summary: 'The sub-goals directly below a goal, the oldest first',
    auth,
    effect: 'read',
    cost: 5,
    params: GoalParams,
    returns: v.object({ children: v.array(GoalView), total: v.number() }),
    errors,
    async handle({ params }) {
      const { opened, toView } = await load(goals)
      const children = (await opened.children(params.id)).map(toView)
      return { children, total: children.length }
    },
  })
}
