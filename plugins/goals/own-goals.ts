import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Goal } from './contract.ts'
import { toView } from './row.ts'
import type { GoalFields } from './schema.ts'
import type { Goals } from './service.ts'

const MAX_LISTED = 200

export type OwnGoalInput = Pick<GoalFields, 'description' | 'due_at' | 'parent_id'> & {
  readonly title: string
  readonly agent?: string | undefined
}

/** What an agent does with goals by its tools. */
export class OwnGoals {
  readonly #goals: Goals
  readonly #agents: Agents
  readonly #caller: string
  constructor(goals: Goals, agents: Agents, caller: string) {
    this.#goals = goals
    this.#agents = agents
    this.#caller = caller
  }

  /** For the agent itself or for one that it may message, below a goal that it may change. */
  async create({ agent, ...fields }: OwnGoalInput) {
    const from = await this.#agents.require(this.#caller)
    const target = agent ? await this.#agents.resolve(agent) : from
    if (target.id !== from.id && !this.#agents.mayMessage(from, target))
      throw new Refusal(
        'forbidden',
        `This agent may not make goals for "${target.name}": capabilities.agent_message of its manifest does not name it.`,
      )
    if (fields.parent_id) this.#check(await this.#goals.require(fields.parent_id))
    return brief(await this.#goals.create({ ...fields, agent_id: target.id }, { createdBy: this.#caller }))
  }
  async list(status: Goal['status'] | undefined) {
    return (await this.#goals.ofAgent(this.#caller, status, MAX_LISTED)).map(brief)
  }
  async update(id: string, { status, progress }: Partial<Pick<Goal, 'status' | 'progress'>>) {
    if (status === undefined && progress === undefined)
      throw new Refusal('invalid_request', 'Give status, progress, or both.')
    const fields = { ...(status === undefined ? {} : { status }), ...(progress === undefined ? {} : { progress }) }
    return brief(await this.#goals.change(id, fields, (goal) => this.#check(goal)))
  }

  #check({ agentId, createdBy, title }: Goal): void {
    if (agentId === undefined || agentId === this.#caller || createdBy === this.#caller) return
    throw new Refusal('forbidden', `The goal "${title}" is that of another agent.`)
  }
}

function brief(goal: Goal) {
  const { created_at: _made, created_by: _maker, ...view } = toView(goal)
  return view
}
