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

export interface A2aExternalAgent {
  readonly id: string
  readonly name: string
  readonly state: 'pending' | 'trusted'
  readonly change: 'discovered' | 'trusted' | 'changed' | 'removed'
}
/** An agent elsewhere was found, trusted, changed or forgotten. */
export const A2aAgentChanged = notify<A2aExternalAgent>('a2a:agent-changed')

export interface A2aSentTask {
  /** Also the id of the message. */
  readonly id: string
  readonly agentId: string
  /** As the other side calls it, once it has. */
  readonly taskId: string | null
  readonly state: string
}
/** A task that was sent to an agent elsewhere has another state. */
export const A2aSentChanged = notify<A2aSentTask>('a2a:sent-changed')
