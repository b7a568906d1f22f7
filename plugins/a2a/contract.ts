import { notify } from 'svc/sdk'

/** A task that another program gave to an agent here. `canceled` is spelt as the protocol does. */
export interface A2aTask {
  readonly id: string
  readonly agentId: string
  readonly contextId: string
  readonly state: 'submitted' | 'working' | 'completed' | 'failed' | 'canceled'
}

/** Another program gave an agent a task, which is on disk, or a task has ended. */
export const A2aTaskChanged = notify<A2aTask>('a2a:task-changed')
