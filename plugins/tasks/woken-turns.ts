import { Refusal } from 'svc/sdk'
import type { ToolDescription } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import { behalfOf } from './rows/row.ts'
import type { StoredTask } from './rows/row.ts'
import type { TaskStore } from './rows/store.ts'

/** Tools about the task itself: those for whom it is need no right to them. */
const OWN_TOOLS: ReadonlySet<string> = new Set(['task_complete', 'task_status'])

type WokenTask = Pick<StoredTask, 'id' | 'on_behalf'>

/** Which turns work on a task, and for whom. */
export class WokenTurns {
  readonly #store: Pick<TaskStore, 'woken'>
  readonly #agents: Pick<Agents, 'find' | 'mayUse'>
  /** By the id of the turn. */
  readonly #tasks = new Map<string, WokenTask>()
  /** Turns that began before a restart go on before the queue does. */
  #loaded: Promise<void> | undefined
  constructor(store: Pick<TaskStore, 'woken'>, agents: Pick<Agents, 'find' | 'mayUse'>) {
    this.#store = store
    this.#agents = agents
  }

  add(turnId: string, { id, on_behalf }: WokenTask): void {
    this.#tasks.set(turnId, { id, on_behalf })
  }
  remove(turnId: string): void {
    this.#tasks.delete(turnId)
  }
  async taskOf(turnId: string): Promise<WokenTask | undefined> {
    await (this.#loaded ??= this.#load())
    return this.#tasks.get(turnId)
  }

  /**
   * Security facts 1.12: a task for a more privileged agent gives nobody more rights than it has. Throws `forbidden`
   * when one of those for whom the turn works may not use the tool itself.
   */
  async checkTool(turnId: string, tool: Pick<ToolDescription, 'name' | 'risk' | 'needs'>): Promise<void> {
    const task = await this.taskOf(turnId)
    if (!task || OWN_TOOLS.has(tool.name)) return
    for (const id of behalfOf(task)) {
      const agent = await this.#agents.find(id)
      if (!agent)
        throw new Refusal(
          'forbidden',
          `The agent that posted this task is gone: nobody knows whether it may ${tool.name}`,
        )
      if (!this.#agents.mayUse(agent, tool))
        throw new Refusal('forbidden', `"${agent.name}", who posted this task, may not use ${tool.name} itself`)
    }
  }

  async #load(): Promise<void> {
    try {
      for (const { turn_id: turnId, ...task } of await this.#store.woken())
        if (turnId !== null && !this.#tasks.has(turnId)) this.add(turnId, task)
    } catch (error) {
      this.#loaded = undefined
      throw error
    }
  }
}
