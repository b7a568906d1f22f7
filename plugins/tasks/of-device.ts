import type { DeviceWork, DeviceWorkAsked } from '../pairing/contract.ts'
import type { TaskService } from './service.ts'

/** Adds the tasks that a device posted and that have not ended. */
export async function addTasks(tasks: TaskService, asked: DeviceWorkAsked): Promise<DeviceWorkAsked> {
  const found: DeviceWork[] = []
  const turns: string[] = []
  for (const { event, details } of asked.entries) {
    const id = event === 'task_posted' ? /^task (\S+) revision /.exec(details)?.[1] : undefined
    const task = id === undefined ? undefined : await tasks.stored(id)
    if (!task) continue
    if (task.turn_id !== null) turns.push(task.turn_id)
    if (task.status !== 'pending' && task.status !== 'in_progress') continue
    const { id: taskId, title: name, assigned_to: agentId } = task
    found.push({
      kind: 'task',
      id: taskId,
      name,
      agentId: agentId ?? '',
      statements: tasks.cancelling(task, asked.reason),
    })
  }
  return { ...asked, found: [...asked.found, ...found], turns: [...asked.turns, ...turns] }
}
