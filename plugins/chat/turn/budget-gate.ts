import type { CompletionRequest } from 'svc/providers'
import type { Hooks, Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Budgets } from '../../budgets/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import { measure } from '../context/window.ts'
import { ModelCallStarting } from '../contract.ts'

/** Token counts are estimates, and a reservation must rather be too high. */
const MARGIN = 1.1
/** Length of an answer when the request does not limit it. */
const ANSWER_TOKENS = 4096
/** Statements that release a reservation. */
export type ReleaseReservation = () => readonly Statement[]
export interface BudgetRequest {
  readonly agent: Agent
  readonly turnId: string
  readonly sessionId: string
  readonly model: ResolvedModel
  readonly request: CompletionRequest
}

/** Reserves the budget for each call of a model. */
export class BudgetGate {
  readonly #hooks: Hooks
  readonly #budgets: () => Budgets | undefined
  constructor(hooks: Hooks, budgets: () => Budgets | undefined) {
    this.#hooks = hooks
    this.#budgets = budgets
  }

  /** Most agents have no limit and skip the gate. While the budgets are being loaded the gate waits for them. */
  isRequired(agent: Agent): boolean {
    return this.#budgets()?.limits(agent) ?? true
  }

  /** Throws the refusal. */
  async reserve({ request, ...call }: BudgetRequest): Promise<ReleaseReservation | undefined> {
    const releases: ReleaseReservation[] = []
    const { used } = measure(request, request.system, call.model.contextWindow)
    await this.#hooks.check(ModelCallStarting, {
      ...call,
      maxTokens: { input: Math.ceil(used * MARGIN), output: request.maxTokens ?? ANSWER_TOKENS },
      onRelease: (release) => {
        releases.push(release)
      },
    })
    return releases.length === 0 ? undefined : () => releases.flatMap((release) => release())
  }
}
