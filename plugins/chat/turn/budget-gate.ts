import type { CompletionRequest } from 'svc/providers'
import type { Hooks, Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Budgets } from '../../budgets/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import { ModelCallStarting } from '../contract.ts'
import { measure } from '../context/window.ts'

/** The counts are rules of thumb, and what is set aside must rather be too much. */
const MARGIN = 1.1
/** An answer may be this long when the request does not say. */
const ANSWER_TOKENS = 4096
export type ReleaseReservation = () => readonly Statement[]
export interface BudgetRequest {
  readonly agent: Agent
  readonly turnId: string
  readonly sessionId: string
  readonly model: ResolvedModel
  readonly request: CompletionRequest
}

/** What every call of a model passes that somebody limits. */
export class BudgetGate {
  readonly #hooks: Hooks
  readonly #budgets: () => Budgets | undefined
  constructor(hooks: Hooks, budgets: () => Budgets | undefined) {
    this.#hooks = hooks
    this.#budgets = budgets
  }

  /** Whether to pass at all: most agents have no limit and pay nothing. While the budgets are away the gate waits for them. */
  due(agent: Agent): boolean {
    return this.#budgets()?.limits(agent) ?? true
  }

  /** Settles with what gives back all that was set aside. Throws the refusal. */
  async pass({ agent, turnId, sessionId, model, request }: BudgetRequest): Promise<ReleaseReservation | undefined> {
    const held: ReleaseReservation[] = []
    const { used } = measure(request, request.system, model.contextWindow)
    await this.#hooks.check(ModelCallStarting, {
      agent,
      turnId,
      sessionId,
      model,
      most: { input: Math.ceil(used * MARGIN), output: request.maxTokens ?? ANSWER_TOKENS },
      held: (giveBack) => {
        held.push(giveBack)
      },
    })
    return held.length === 0 ? undefined : () => held.flatMap((giveBack) => giveBack())
  }
}
