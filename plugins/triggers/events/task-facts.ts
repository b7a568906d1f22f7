import type { Agents } from '../../agents/contract.ts'
import type { Tasks } from '../../tasks/contract.ts'
import type { TriggerEvent } from './event.ts'
import type { AgentRef, TaskFacts } from './pattern.ts'

export interface TaskFactsDeps {
  readonly agents: Pick<Agents, 'find'>
  readonly tasks: () => Pick<Tasks, 'find'> | undefined
}

/** Who the task of an event is for, and who posted it; `undefined` when it is gone. */
export async function readTaskFacts(
  { agents, tasks }: TaskFactsDeps,
  { taskId }: TriggerEvent,
): Promise<TaskFacts | undefined> {
  const task = taskId === undefined ? undefined : await tasks()?.find(taskId)
  if (!task) return undefined
  const refer = async (id: string): Promise<AgentRef> => ({ id, name: (await agents.find(id))?.name ?? '' })
  return {
    assignee: task.assignedTo === undefined ? undefined : await refer(task.assignedTo),
    creator: await refer(task.createdBy),
  }
}
