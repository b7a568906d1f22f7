import { setTimeout as delay } from 'node:timers/promises'
import { isDown, isInterrupted } from './client.ts'
import type { Client } from './client.ts'
import { agentOf } from './load.ts'
import type { Load } from './load.ts'

const CLIENTS = 3
const PAUSE_MS = 150
/** A thousandth of a dollar a token. */
export const PRICE_PER_MILLION = 1_000
/** What the model counts for each answer. */
export const USAGE = { prompt_tokens: 40, completion_tokens: 10, total_tokens: 50 }
const COST_USD = (USAGE.total_tokens * PRICE_PER_MILLION) / 1_000_000
/** That many answers, and what an answer may cost at most. */
const LIMIT_USD = 40 * COST_USD

/** Agents that may spend so much, asked at every daemon at once. What they spent is counted by the model. */
export class BudgetLoad implements Load {
  readonly figures = { budget_answers: 0, budget_refusals: 0 }
  readonly #client: Client
  /** Answers of the model, by the label of their agent. */
  readonly #spent = new Map<string, number>()
  #path = ''
  #sessions: readonly string[] = []
  constructor(client: Client) {
    this.#client = client
  }

  /** The model was asked for this. */
  spend(label: string): void {
    const round = label.split('-')[0] ?? ''
    this.#spent.set(round, (this.#spent.get(round) ?? 0) + 1)
    this.figures.budget_answers++
  }

  async prepare(round: number): Promise<void> {
    const agent = agentOf(`budget-${round}`, { model: 'fake-2', resources: `max_cost_per_day_usd = ${LIMIT_USD}` })
    const agentId = await this.#client.make('/api/agents', 'agent_id', agent)
    this.#path = `/api/agents/${agentId}/message`
    // Each client has one of its own, so that they do not wait for one another.
    const sessions: string[] = []
    for (let n = 0; n < CLIENTS; n++)
      sessions.push(await this.#client.make(`/api/agents/${agentId}/sessions`, 'session_id', {}))
    this.#sessions = sessions
  }
  async run(round: number, signal: AbortSignal): Promise<void> {
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        for (let n = 0; !signal.aborted; n++, await delay(PAUSE_MS)) {
          const message = `say b${round}-${client}-${n}`
          const answer = await this.#client.ask('POST', this.#path, { message, session_id: this.#sessions[client] })
          if (answer?.status === 429) {
            this.figures.budget_refusals++
            await delay(PAUSE_MS)
          } else if (answer && answer.status !== 200 && !isDown(answer.status) && !isInterrupted(answer.body))
            this.#client.problem(`${message} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
        }
      }),
    )
  }
  async check(round: number): Promise<readonly string[]> {
    const usd = (this.#spent.get(`b${round}`) ?? 0) * COST_USD
    return usd > LIMIT_USD ? [`an agent that may spend ${LIMIT_USD} USD spent ${usd}`] : []
  }
}
