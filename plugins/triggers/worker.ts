import * as v from 'valibot'
import { messageOf, orAborted, runAs, ServerAway, stableId, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { TurnRequest, Turns } from '../chat/contract.ts'
import type { Job as QueueJob, JobOutcome } from '../queue/contract.ts'
import type { ResultDelivery } from '../result-delivery/contract.ts'
import type { WorkflowRuns } from '../workflows/contract.ts'
import type { Settings } from './config.ts'
import { renderPrompt } from './firings/prompt.ts'
import type { FiringEnd, FiringStore } from './firings/store.ts'
import type { HoldReason } from './reasons.ts'
import type { TriggerStore } from './definitions/store.ts'
import type { Firing, Trigger } from './trigger.ts'

export interface WorkerDeps {
  readonly triggers: Pick<TriggerStore, 'find' | 'disable' | 'touch'>
  readonly firings: Pick<FiringStore, 'find' | 'end'>
  readonly agents: Pick<Agents, 'find'>
  readonly turns: Pick<Turns, 'ensure' | 'find'>
  readonly workflows: () => Pick<WorkflowRuns, 'start' | 'find' | 'resolve'> | undefined
  readonly delivery: Pick<ResultDelivery, 'deliver'>
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Logger
  /** The end of a firing is on disk. */
  readonly ended: (firing: Firing, end: FiringEnd) => void
}

export const Payload = v.object({ firing_id: v.string() })
const MAX_ERROR = 2_000
/** A run of a workflow wakes its job when it ends; a wake can be lost with its process. */
const RECHECK_MS = 60_000

/** Does what a trigger fired for. What it leaves behind is committed together with the end of its job of the queue. */
export class FiringRunner {
  readonly #deps: WorkerDeps
  constructor(deps: WorkerDeps) {
    this.#deps = deps
  }

  async run({ payload, signal }: Pick<QueueJob, 'payload' | 'signal'>): Promise<JobOutcome> {
    const { triggers, firings, turns, agents } = this.#deps
    const firing = await firings.find(v.parse(Payload, payload).firing_id)
    if (firing?.state !== 'open') return { outcome: 'done' }
    const trigger = await triggers.find(firing.triggerId)
    if (!trigger) return { outcome: 'done' }
    const agent = await agents.find(firing.agentId)
    if (!agent) return this.#holdBack(firing, 'agent_removed', 'its agent was removed')
    if (trigger.workflowId !== undefined) return this.#workflow(trigger, firing, trigger.workflowId)
    const hasBegun = (await turns.find(firing.turnId)) !== undefined
    if (!hasBegun && agent.state !== 'Running' && agent.state !== 'Initializing')
      return this.#holdBack(firing, 'agent_not_running', `agent "${agent.name}" is ${agent.state.toLowerCase()}`)
    return this.#turn(trigger, firing, agent, signal)
  }

  /** The queue gave up: the daemon died too often, or what was to be written could not be. */
  dead({ payload }: Pick<QueueJob, 'payload'>, reason: string): readonly Statement[] {
    const { firings, clock } = this.#deps
    const { firing_id: id } = v.parse(Payload, payload)
    return [firings.end(id, { state: 'failed', error: reason.slice(0, MAX_ERROR) }, clock.now())]
  }

  async #turn(trigger: Trigger, firing: Firing, agent: Agent, signal: AbortSignal): Promise<JobOutcome> {
    const { turnId } = firing
    const { turns } = this.#deps
    try {
      // What the turn does is known to come from this firing: chains of triggers are counted by it.
      const actor = { kind: 'trigger', id: trigger.id, origin: turnId }
      const turn = await runAs(actor, () => turns.ensure(requestOf(trigger, firing, agent)))
      const { text, stop } = await orAborted(turn.result(), signal)
      if (stop === 'cancelled')
        return this.#end(firing, { state: 'cancelled', result: text, error: 'the turn was stopped' })
      return this.#succeed(trigger, firing, text)
    } catch (error) {
      if (signal.aborted) throw error
      const state = (await turns.find(turnId))?.state
      if (state === undefined) return this.#notBegun(firing, error)
      // The daemon is being stopped: the turn goes on by itself, and this job follows it again.
      if (state === 'queued' || state === 'running' || state === 'waiting') throw error
      // It did not fail: its result could not be read.
      if (state === 'done') throw error
      return this.#fail(firing, error)
    }
  }
  /** The turn was refused before it was written. */
  #notBegun(firing: Firing, error: unknown): JobOutcome {
    if (!(error instanceof Refusal)) return this.#fail(firing, error)
    if (error.code === 'service_unavailable' && 'quiet_hours' in error.details)
      return this.#holdBack(firing, 'quiet_hours', error.message)
    if (error.code === 'agent_not_found') return this.#holdBack(firing, 'agent_removed', error.message)
    if (error.code === 'conflict') return this.#holdBack(firing, 'agent_not_running', error.message)
    // The session is full, or the daemon busy, which is no failure however long it takes.
    if (error.code === 'rate_limit' || error.code === 'service_unavailable') return later(error)
    return this.#fail(firing, error)
  }

  /** The run has the id of the firing, so that a crash begins no second one. */
  async #workflow(trigger: Trigger, firing: Firing, workflowId: string): Promise<JobOutcome> {
    const runs = this.#deps.workflows()
    if (!runs) return this.#fail(firing, new Error('no plugin runs workflows'))
    const input = renderPrompt(trigger.promptTemplate, firing.eventText)
    try {
      const actor = { kind: 'trigger', id: trigger.id, origin: firing.turnId }
      const { createdBy: agentId, hops } = trigger
      // Its rights, or those of its workflow, may have changed since it made the trigger.
      if (agentId !== undefined) await runs.resolve(workflowId, agentId)
      const cause = `trigger ${trigger.id}`
      const run = { id: firing.id, workflowId, input, cause, hops, ...omitUndefined({ agentId }) }
      await runAs(actor, () => runs.start(run))
    } catch (error) {
      if (error instanceof ServerAway) throw error
      if (error instanceof Refusal && error.code === 'rate_limit') return later(error)
      return this.#fail(firing, error)
    }
    const run = await runs.find(firing.id)
    if (run?.state === 'Completed') return this.#succeed(trigger, firing, run.output ?? '')
    if (run?.state === 'Cancelled') return this.#end(firing, { state: 'cancelled', error: 'the run was cancelled' })
    if (run?.state === 'Failed') return this.#fail(firing, new Error(run.error ?? 'the run failed'))
    return { outcome: 'postponed', afterMs: RECHECK_MS }
  }

  #succeed(trigger: Trigger, firing: Firing, text: string): JobOutcome {
    const { settings, delivery } = this.#deps
    const data = { trigger_id: trigger.id, event: firing.eventKind, event_at: toIso(firing.eventAt) }
    const results = trigger.delivery.flatMap((target, at) =>
      delivery.deliver(target, {
        id: stableId('trigger-result', firing.id, String(at)),
        agentId: firing.agentId,
        event: 'trigger.completed',
        text,
        data,
      }),
    )
    return this.#end(firing, { state: 'done', result: text.slice(0, settings.max_result_chars) }, results)
  }
  #fail(firing: Firing, error: unknown): JobOutcome {
    const text = messageOf(error).slice(0, MAX_ERROR)
    this.#deps.log.warn(`trigger ${firing.triggerId} failed for ${firing.eventKind}: ${text}`)
    return this.#end(firing, { state: 'failed', error: text })
  }
  #holdBack(firing: Firing, reason: HoldReason, detail: string): JobOutcome {
    this.#deps.log.info(`trigger ${firing.triggerId} is held back for ${firing.eventKind} (${reason}: ${detail})`)
    return this.#end(firing, { state: 'held_back', reason, detail })
  }
  #end(firing: Firing, end: FiringEnd, statements: readonly Statement[] = []): JobOutcome {
    const { firings, clock, ended } = this.#deps
    const row = firings.end(firing.id, end, clock.now())
    return { outcome: 'done', statements: [{ ...row, written: () => ended(firing, end) }, ...statements] }
  }
}

const later = ({ retryAfterSecs = 5 }: Refusal): JobOutcome => ({
  outcome: 'postponed',
  afterMs: retryAfterSecs * 1000,
})

function requestOf(trigger: Trigger, firing: Firing, agent: Agent): TurnRequest & { readonly id: string } {
  const sessionId =
    trigger.sessionMode === 'new'
      ? stableId('trigger-session', firing.id)
      : trigger.sessionMode === 'persistent'
        ? agent.sessionId
        : undefined
  return {
    id: firing.turnId,
    agentId: agent.id,
    text: renderPrompt(trigger.promptTemplate, firing.eventText),
    entryPoint: 'trigger',
    // Security facts 1.12: a trigger for a more privileged agent gives nobody more rights than it has.
    onBehalf: trigger.onBehalf.filter((other) => other !== agent.id),
    labels: [...new Set([...trigger.labels, ...firing.labels])],
    hops: trigger.hops,
    instructions:
      `A trigger (${trigger.id}) asks for this because of the event "${firing.eventKind}" at ` +
      `${toIso(firing.eventAt)}. Nobody is waiting at a screen.`,
    ...omitUndefined({ sessionId }),
  }
}
