import * as v from 'valibot'
import type { Goal } from './contract.ts'
import { STATUSES } from './schema.ts'
import type { GoalView } from './schema.ts'

const text = v.pipe(
  v.nullable(v.string()),
  v.transform((value) => value ?? undefined),
)
const integer = v.pipe(v.union([v.number(), v.string()]), v.transform(Number))

export const Count = v.object({ count: integer })
/** A goal as it lies in the database. */
export const GoalRow = v.pipe(
  v.object({
    id: v.string(),
    title: v.string(),
    description: v.string(),
    status: v.picklist(STATUSES),
    progress: integer,
    agent_id: text,
    parent_id: text,
    due_at: text,
    created_by: text,
    version: integer,
    created_at: v.string(),
    updated_at: v.string(),
  }),
  v.transform(({ agent_id, parent_id, due_at, created_by, created_at, updated_at, ...row }) => ({
    ...row,
    agentId: agent_id,
    parentId: parent_id,
    dueAt: due_at,
    createdBy: created_by,
    createdAt: created_at,
    updatedAt: updated_at,
  })),
)
export type StoredGoal = Goal & { readonly version: number }

export function toView(goal: Goal): GoalView {
  return {
    id: goal.id,
    title: goal.title,
    description: goal.description,
    status: goal.status,
    progress: goal.progress,
    agent_id: goal.agentId ?? null,
    parent_id: goal.parentId ?? null,
    due_at: goal.dueAt ?? null,
    created_by: goal.createdBy ?? null,
    created_at: goal.createdAt,
    updated_at: goal.updatedAt,
  }
}
