import { defineService, notify } from 'svc/sdk'

export type TaskStatus = 'pending' | 'in_progress' | 'completed' | 'failed' | 'cancelled'

/** A task of the list that all agents share. Its texts come from whoever posted it. */
export interface Task {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly status: TaskStatus
  /** Agent by id; any agent may claim the task when absent. */
  readonly assignedTo: string | undefined
  /** Agent by id, or who else posted it, in words such as `API key`. */
  readonly createdBy: string
  /** Agent by id. */
  readonly claimedBy: string | undefined
  /** What it led to, or why it failed. */
  readonly result: string | undefined
  /** Where title and description may come from: a prompt that is made of them has these labels. */
  readonly labels: readonly string[]
  /** Rises with each change. */
  readonly revision: number
  /** ISO 8601 UTC. */
  readonly createdAt: string
}

export interface NewTask {
  /** A UUID, the same whenever the same task is meant: a second one is not added. */
  readonly id?: string | undefined
  readonly title: string
  readonly description?: string | undefined
  /** Id or name of an agent; any agent may claim the task when absent or empty. */
  readonly assignedTo?: string | undefined
  /**
   * Id of the agent that posts it, which is held to its limits and to the agents it may message. A person or program
   * does when absent: the caller of the current request.
   */
  readonly agentId?: string | undefined
  /** The agents that asked for the turn in which it does: the task is for them too. */
  readonly onBehalf?: readonly string[] | undefined
  /** Whether the assignee gets a turn; `plugins.tasks.wake_assignee` when absent. */
  readonly wake?: boolean | undefined
  /** Where title and description may come from. Texts of an agent have `UntrustedAgent` besides. */
  readonly labels?: readonly string[] | undefined
  /** Daemons that the request for it came through: its turn came through as many. */
  readonly hops?: number | undefined
}

export interface Tasks {
  /**
   * Settles when the task is durable. Throws `invalid_request`, `agent_not_found` for an unknown assignee, `forbidden`
   * for one that the posting agent may not message, and `rate_limit` when too many tasks are open.
   */
  post(task: NewTask): Promise<Task>
  find(id: string): Promise<Task | undefined>
}
export const Tasks = defineService<Tasks>()('tasks')

/**
 * What happened to a task. It is durable before anybody is told, and lost to listeners when the process dies in between:
 * who must miss none follows the audit trail instead. Its entries `task_posted`, `task_claimed`, `task_completed` and
 * `task_changed` begin with `task <id> revision <n>`, and concern the agent that caused the change.
 */
export interface TaskEvent {
  /** `<id of the task>:<revision>`, the same wherever the event is reported. */
  readonly eventId: string
  readonly task: Task
  /** The agent that caused it; `undefined` when a person or the daemon did. */
  readonly agentId: string | undefined
  /** ISO 8601 UTC. */
  readonly at: string
}
/** A task was posted. */
export const TaskPosted = notify<TaskEvent>('tasks:posted')
/** An agent works on a task now. */
export const TaskClaimed = notify<TaskEvent>('tasks:claimed')
/** An agent finished a task; its result is there. */
export const TaskCompleted = notify<TaskEvent>('tasks:completed')
/** A task changed in another way: it failed, was cancelled, edited, or is open again. */
export const TaskChanged = notify<TaskEvent>('tasks:changed')
