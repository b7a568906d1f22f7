import { notify } from 'svc/sdk'

export type GoalStatus = 'pending' | 'in_progress' | 'completed' | 'cancelled'
export interface Goal {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly status: GoalStatus
  /** Percent. */
  readonly progress: number
  readonly agentId: string | undefined
  readonly parentId: string | undefined
  /** ISO 8601 UTC, as the others. */
  readonly dueAt: string | undefined
  /** The agent that made it; a person did when absent. */
  readonly createdBy: string | undefined
  readonly createdAt: string
  readonly updatedAt: string
}

/** A goal was made, changed or deleted. Each sub-goal that is deleted with it has an event of its own. */
export const GoalChanged = notify<{ readonly change: 'created' | 'updated' | 'deleted'; readonly goal: Goal }>(
  'goals:changed',
)
