import { Refusal } from 'svc/sdk'
import type { ToolDescription } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { RequestingAgents } from '../delegation/contract.ts'
import { behalfOf } from './rows/row.ts'
import type { StoredTask } from './rows/row.ts'
import type { TaskStore } from './rows/store.ts'

/** Tools about the task itself: those for whom it is need no right to them. */
const OWN_TOOLS: ReadonlySet<string> = new Set(['task_complete', 'task_status'])

type WokenTask = Pick<StoredTask, 'id' | 'on_behalf'>

export interface WokenTurnsDeps {
  readonly store: Pick<TaskStore, 'woken'>
  readonly agents: Pick<Agents, 'find' | 'mayUse'>
  /** Who waits for a turn by a message. */
  readonly requesting: () => RequestingAgents | undefined
}

/** Which turns work on a task, and for whom. */
export class WokenTurns {
  readonly #store: Pick<TaskStore, 'woken'>
  readonly #agents: Pick<Agents, 'find' | 'mayUse'>
  readonly #requesting: () => RequestingAgents | undefined
  /** By the id of the turn. */
  readonly #tasks = new Map<string, WokenTask>()
  /** Turns that began before a restart go on before the queue does. */
  #loaded: Promise<void> | undefined
  constructor({ store, agents, requesting }: WokenTurnsDeps) {
    this.#requesting = requesting
    this.#store = store
    this.#agents = agents
  }

  add(turnId: string, { id, on_behalf }: WokenTask): void {
    this.#tasks.set(turnId, { id, on_behalf })
  }
  remove(turnId: string): void {
    this.#tasks.delete(turnId)
  }
  /** The agents for whom a turn works, by tasks and by messages; the last one is the nearest. */
  async behalfOf(turnId: string): Promise<readonly string[]> {
    return [...(await this.#posters(turnId)), ...(this.#requesting()?.of(turnId) ?? [])]
  }
  /** The agents that posted the task of a turn, or of one that waits for it. */
  async #posters(turnId: string): Promise<readonly string[]> {
    await (this.#loaded ??= this.#load())
    const turns = [turnId, ...(this.#requesting()?.turnsOf(turnId) ?? [])]
    return turns.flatMap((id) => {
      const task = this.#tasks.get(id)
      return task ? behalfOf(task) : []
    })
  }

  /**
   * Security facts 1.12: a task for a more privileged agent gives nobody more rights than it has. Throws `forbidden`
   * when one of those for whom the turn works may not use the tool itself.
   */
  async checkTool(turnId: string, tool: Pick<ToolDescription, 'name' | 'risk' | 'needs'>): Promise<void> {
    if (OWN_TOOLS.has(tool.name) || this.#requesting()?.intersects === false) return
    for (const id of await this.#posters(turnId)) {
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
