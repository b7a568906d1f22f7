import { messageOf, orAborted, stableId, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Chat, TurnRequest, Turns } from '../../chat/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { JobOutcome, Queue } from '../../queue/contract.ts'
import { isLabel } from '../../sessions/contract.ts'
import type { Action, Job, Slot } from '../job.ts'
import { LANE } from '../lane.ts'
import type { SlotEnds } from './ends.ts'
import { later } from './later.ts'

export interface AgentTurnDeps {
  readonly queue: Pick<Queue, 'find'>
  readonly turns: Pick<Turns, 'ensure' | 'find'>
  readonly chat: Pick<Chat, 'cancel'>
  readonly inference: () => Pick<Inference, 'choose'> | undefined
  readonly clock: Clock
  readonly ends: SlotEnds
}
type TurnAction = Extract<Action, { readonly kind: 'agent_turn' }>
interface Attempt {
  readonly job: Job
  readonly action: TurnAction
  readonly slot: Slot
  /** `undefined`: it was removed while its turn ran. */
  readonly agent: Agent | undefined
  readonly signal: AbortSignal
}

/** The same however often the slot is tried: a turn that a crash interrupted is followed, and not begun again. */
export const turnIdOf = ({ runId }: Pick<Slot, 'runId'>): string => stableId('schedule-turn', runId)

/** A slot that asks an agent something. */
export class AgentTurnAction {
  readonly #deps: AgentTurnDeps
  constructor(deps: AgentTurnDeps) {
    this.#deps = deps
  }

  /** Also when it has ended. */
  async hasBegun(slot: Slot): Promise<boolean> {
    return (await this.#deps.turns.find(turnIdOf(slot))) !== undefined
  }

  async run(attempt: Attempt): Promise<JobOutcome> {
    const { job, slot, action, signal } = attempt
    const { turns, chat, clock, ends } = this.#deps
    const turnId = turnIdOf(slot)
    const { timeout_secs: secs } = action
    let stopTimer: (() => void) | undefined
    let isLate = false
    try {
      const turn = await turns.ensure(await this.#request(attempt, turnId))
      if (secs !== undefined)
        stopTimer = clock.after(secs * 1000, () => {
          isLate = true
          chat.cancel(turnId)
        })
      const { text, stop } = await orAborted(turn.result(), signal)
      if (isLate) return ends.fail(job, slot, { turnId, error: `it took longer than ${secs} seconds` })
      if (stop === 'cancelled') return ends.cancelled(job, slot, { turnId, text, error: 'the turn was stopped' })
      return ends.succeed(job, slot, { turnId, text })
    } catch (error) {
      return this.#failed(attempt, turnId, error)
    } finally {
      stopTimer?.()
    }
  }

  async #failed({ job, slot, signal }: Attempt, turnId: string, error: unknown): Promise<JobOutcome> {
    const { queue, turns, chat, ends } = this.#deps
    if (signal.aborted) {
      // Somebody cancelled it, or removed the schedule. Otherwise the daemon leaves, and the turn goes on by itself.
      if ((await queue.find(LANE, slot.runId))?.state === 'cancelled') chat.cancel(turnId)
      throw error
    }
    const state = (await turns.find(turnId))?.state
    if (state === undefined) return this.#notBegun(job, slot, turnId, error)
    // The daemon is being stopped: the turn goes on by itself, and this job follows it again.
    if (state === 'queued' || state === 'running' || state === 'waiting') throw error
    // It did not fail: its result could not be read.
    if (state === 'done') throw error
    return ends.fail(job, slot, { turnId, error: messageOf(error) })
  }

  /** The turn was refused before it was written. */
  #notBegun(job: Job, slot: Slot, turnId: string, error: unknown): JobOutcome {
    const { ends } = this.#deps
    const code = error instanceof Refusal ? error.code : undefined
    if (error instanceof Refusal && isQuiet(error))
      return ends.skip(job, slot, { reason: 'quiet_hours', detail: error.message })
    if (code === 'agent_not_found') return ends.skip(job, slot, { reason: 'agent_removed', detail: messageOf(error) })
    if (code === 'conflict') return ends.skip(job, slot, { reason: 'agent_not_running', detail: messageOf(error) })
    // The session is full, or the daemon busy, which is no failure however long it takes.
    if (error instanceof Refusal && (code === 'rate_limit' || code === 'service_unavailable')) return later(error)
    return ends.fail(job, slot, { turnId, error: messageOf(error) })
  }

  async #request({ job, slot, action, agent }: Attempt, id: string): Promise<TurnRequest & { readonly id: string }> {
    const { agentId, labels, hops } = job
    const name = action.model_override
    const model =
      name === undefined ? undefined : await this.#deps.inference()?.choose(name, agent?.manifest.model.provider ?? '')
    const late = slot.lateMs >= 60_000 ? ` It is ${Math.round(slot.lateMs / 60_000)} minutes late.` : ''
    return {
      id,
      agentId,
      text: action.message,
      entryPoint: 'schedule',
      // Security facts 1.12: a schedule for a more privileged agent gives nobody more rights than it has.
      onBehalf: job.onBehalf.filter((other) => other !== agentId),
      labels: labels.filter(isLabel),
      hops,
      instructions: `A schedule (${job.id}) asks for this, for ${toIso(slot.slotAt)}. Nobody is waiting at a screen.${late}`,
      ...omitUndefined({ sessionId: sessionOf(job, slot, agent), model }),
    }
  }
}

function sessionOf({ sessionMode }: Job, { runId }: Slot, agent: Agent | undefined): string | undefined {
  if (sessionMode === 'new') return stableId('schedule-session', runId)
  return sessionMode === 'persistent' ? agent?.sessionId : undefined
}
const isQuiet = ({ code, details }: Refusal): boolean => code === 'service_unavailable' && 'quiet_hours' in details
