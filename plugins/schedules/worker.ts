import * as v from 'valibot'
import { orAborted, stableId, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Chat, TurnRequest, Turns } from '../chat/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Job as QueueJob, JobOutcome } from '../queue/contract.ts'
import type { ResultDelivery } from '../result-delivery/contract.ts'
import { LABELS } from '../sessions/contract.ts'
import type { Label } from '../sessions/contract.ts'
import type { Settings } from './config.ts'
import type { Job, Slot } from './job.ts'
import type { JobStore } from './jobs/store.ts'
import type { Skip, SlotEnd, SlotStore } from './slots/store.ts'

export interface WorkerDeps {
  readonly jobs: JobStore
  readonly slots: SlotStore
  readonly agents: Pick<Agents, 'find'>
  readonly turns: Pick<Turns, 'ensure' | 'find'>
  readonly chat: Pick<Chat, 'attach'>
  readonly inference: () => Pick<Inference, 'choose'> | undefined
  readonly audit: Pick<Audit, 'entry'>
  readonly delivery: Pick<ResultDelivery, 'deliver'>
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Logger
  /** The end of a slot is on disk. */
  readonly ended: (job: Job, slot: Slot, end: SlotOutcome) => void
  /** A job was disabled because it failed too often. */
  readonly disabled: (job: Job, failures: number, error: string) => void
  readonly systemEvent: (job: Job, slot: Slot, text: string) => void
}
export interface SlotOutcome {
  readonly state: 'done' | 'failed' | 'skipped' | 'cancelled'
  readonly turnId?: string | undefined
  readonly result?: string | undefined
  readonly error?: string | undefined
}

export const Payload = v.object({ job_id: v.string(), kind: v.picklist(['slot', 'manual']), slot_at: v.number() })
/** Results that go to a chat. */
const MAX_ERROR = 2_000

/** Runs one slot. What it leaves behind is committed together with the end of its job of the queue. */
export class SlotRunner {
  readonly #deps: WorkerDeps
  constructor(deps: WorkerDeps) {
    this.#deps = deps
  }

  async run(queued: Pick<QueueJob, 'id' | 'payload' | 'signal'>): Promise<JobOutcome> {
    const { jobs, slots } = this.#deps
    const { job_id: jobId, kind, slot_at: slotAt } = v.parse(Payload, queued.payload)
    const slot = await slots.find({ jobId, kind, slotAt })
    if (slot?.state !== 'open') return { outcome: 'done' }
    const job = await jobs.find(jobId)
    if (!job) return { outcome: 'done' }
    const { action } = job
    if (action.kind === 'system_event') return this.#systemEvent(job, slot, action.text)
    const turnId = stableId('schedule-turn', slot.runId)
    const hasBegun = (await this.#deps.turns.find(turnId)) !== undefined
    const agent = await this.#deps.agents.find(job.agentId)
    const skip = hasBegun ? undefined : whyNot(job, slot, agent)
    if (skip) return this.#skip(job, slot, skip)
    return this.#turn(job, slot, { turnId, agent, message: action.message, signal: queued.signal })
  }

  /** The queue gave up: the daemon died too often, or what was to be written could not be. */
  dead({ payload }: Pick<QueueJob, 'payload'>, reason: string): readonly Statement[] {
    const { job_id: jobId, kind, slot_at: slotAt } = v.parse(Payload, payload)
    const { slots, clock } = this.#deps
    return [slots.end({ jobId, kind, slotAt }, { state: 'failed', error: reason.slice(0, MAX_ERROR) }, clock.now())]
  }

  async #turn(
    job: Job,
    slot: Slot,
    {
      turnId,
      agent,
      message,
      signal,
    }: {
      readonly turnId: string
      readonly agent: Agent | undefined
      readonly message: string
      readonly signal: AbortSignal
    },
  ): Promise<JobOutcome> {
    let timer: (() => void) | undefined
    let isLate = false
    try {
      const turn = await this.#deps.turns.ensure(await this.#request(job, slot, { turnId, agent, message }))
      timer = this.#limit(job, () => {
        isLate = true
        this.#deps.chat.attach(turnId)?.cancel()
      })
      const { text, stop } = await orAborted(turn.result(), signal)
      if (isLate) return this.#fail(job, slot, { turnId, error: `it took longer than ${timeoutOf(job)} seconds` })
      if (stop === 'cancelled') return this.#cancelled(job, slot, turnId, text)
      return this.#succeed(job, slot, { turnId, text })
    } catch (error) {
      if (signal.aborted) throw error
      const state = (await this.#deps.turns.find(turnId))?.state
      if (state === undefined) return this.#notBegun(job, slot, turnId, error)
      // The daemon is being stopped: the turn goes on by itself, and this job follows it again.
      if (state === 'queued' || state === 'running' || state === 'waiting') throw error
      return this.#fail(job, slot, { turnId, error: textOf(error) })
    } finally {
      timer?.()
    }
  }
  /** The turn was refused before it was written. */
  #notBegun(job: Job, slot: Slot, turnId: string, error: unknown): JobOutcome {
    const code = error instanceof Refusal ? error.code : undefined
    if (error instanceof Refusal && isQuiet(error))
      return this.#skip(job, slot, { reason: 'quiet_hours', detail: error.message })
    if (code === 'agent_not_found') return this.#skip(job, slot, { reason: 'agent_removed', detail: textOf(error) })
    if (code === 'conflict') return this.#skip(job, slot, { reason: 'agent_not_running', detail: textOf(error) })
    // The queue tries again: the session is full, or the database busy.
    if (code === 'rate_limit' || code === 'service_unavailable') throw error
    return this.#fail(job, slot, { turnId, error: textOf(error) })
  }
  async #request(
    { id, agentId, sessionMode, labels, action }: Job,
    slot: Slot,
    {
      turnId,
      agent,
      message,
    }: { readonly turnId: string; readonly agent: Agent | undefined; readonly message: string },
  ): Promise<TurnRequest & { readonly id: string }> {
    const sessionId =
      sessionMode === 'new'
        ? stableId('schedule-session', slot.runId)
        : sessionMode === 'persistent'
          ? agent?.sessionId
          : undefined
    const name = action.kind === 'agent_turn' ? action.model_override : undefined
    const models = name === undefined ? undefined : this.#deps.inference()
    const model = name === undefined ? undefined : await models?.choose(name, agent?.manifest.model.provider ?? '')
    const isLate = slot.lateMs >= 60_000
    const late = isLate ? ` It is ${Math.round(slot.lateMs / 60_000)} minutes late.` : ''
    return {
      id: turnId,
      agentId,
      text: message,
      entryPoint: 'schedule',
      labels: labels.filter(isLabel),
      instructions: `A schedule (${id}) asks for this, for ${toIso(slot.slotAt)}. Nobody is waiting at a screen.${late}`,
      ...omitUndefined({ sessionId, model }),
    }
  }
  #limit(job: Job, end: () => void): (() => void) | undefined {
    const secs = timeoutOf(job)
    return secs === undefined ? undefined : this.#deps.clock.after(secs * 1000, end)
  }

  #succeed(
    job: Job,
    slot: Slot,
    { turnId, text }: { readonly turnId: string | undefined; readonly text: string },
  ): JobOutcome {
    const { jobs, settings, clock, delivery } = this.#deps
    const now = clock.now()
    const isSlot = slot.kind === 'slot'
    const data = { schedule_id: job.id, schedule: job.name, slot: toIso(slot.slotAt), late_ms: slot.lateMs }
    const results = job.targets.flatMap((target, at) =>
      delivery.deliver(target, {
        id: stableId('schedule-result', slot.runId, String(at)),
        agentId: job.agentId,
        event: 'schedule.completed',
        text,
        data,
      }),
    )
    return this.#end(job, slot, { state: 'done', turnId, result: text.slice(0, settings.max_result_chars) }, [
      jobs.ran(job, { at: now, status: 'ok', failures: isSlot ? 0 : undefined, ends: isSlot && job.oneShot }),
      ...results,
    ])
  }
  #systemEvent(job: Job, slot: Slot, text: string): JobOutcome {
    const { audit, systemEvent } = this.#deps
    const entry = audit.entry({
      event: 'event_published',
      agentId: job.agentId,
      details: `system event of schedule ${job.id}: ${text}`,
    })
    const { statements = [], ...outcome } = this.#succeed(job, slot, { turnId: undefined, text })
    return { ...outcome, statements: [...statements, { ...entry, written: () => systemEvent(job, slot, text) }] }
  }
  #fail(job: Job, slot: Slot, { turnId, error }: { readonly turnId: string; readonly error: string }): JobOutcome {
    const { jobs, settings, clock, audit, disabled, log } = this.#deps
    const now = clock.now()
    const reason = error.slice(0, MAX_ERROR)
    const end = { state: 'failed', turnId, error: reason } as const
    const status = `error: ${reason}`
    log.warn(`schedule ${job.id} "${job.name}" failed: ${reason}`)
    if (slot.kind === 'manual') return this.#end(job, slot, end, [jobs.ran(job, { at: now, status })])
    const failures = job.failures + 1
    if (failures < settings.max_failures)
      return this.#end(job, slot, end, [jobs.ran(job, { at: now, status, failures })])
    const disable = `disabled after ${failures} failures in a row`
    const ran = jobs.ran(job, { at: now, status, failures, disable })
    const details = `schedule ${job.id} "${job.name}" ${disable}: ${reason}`
    return this.#end(job, slot, end, [
      { ...ran, written: () => disabled(job, failures, reason) },
      audit.entry({ event: 'schedule_changed', agentId: job.agentId, details }),
      ...this.#tellDisabled(job, slot, details),
    ])
  }
  #tellDisabled(job: Job, slot: Slot, text: string): readonly Statement[] {
    return job.targets.flatMap((target, at) =>
      this.#deps.delivery.deliver(target, {
        id: stableId('schedule-disabled', slot.runId, String(at)),
        agentId: job.agentId,
        event: 'schedule.disabled',
        text,
        data: { schedule_id: job.id },
      }),
    )
  }
  #cancelled(job: Job, slot: Slot, turnId: string, text: string): JobOutcome {
    const { jobs, clock } = this.#deps
    const ran = jobs.ran(job, { at: clock.now(), status: 'error: the turn was stopped' })
    return this.#end(job, slot, { state: 'cancelled', turnId, result: text, error: 'the turn was stopped' }, [ran])
  }

  #end(job: Job, slot: Slot, end: SlotEnd, statements: readonly Statement[]): JobOutcome {
    const { slots, clock, ended } = this.#deps
    const row = slots.end(slot, end, clock.now())
    return { outcome: 'done', statements: [{ ...row, written: () => ended(job, slot, end) }, ...statements] }
  }
  #skip(job: Job, slot: Slot, skip: Skip): JobOutcome {
    const { slots, clock, ended, log } = this.#deps
    log.info(`schedule ${job.id} "${job.name}": the slot is skipped (${skip.reason}: ${skip.detail})`)
    const row = slots.skip(slot, skip, clock.now())
    const outcome = { state: 'skipped', error: `${skip.reason}: ${skip.detail}` } as const
    return { outcome: 'done', statements: [{ ...row, written: () => ended(job, slot, outcome) }] }
  }
}

const timeoutOf = ({ action }: Job): number | undefined =>
  action.kind === 'agent_turn' ? action.timeout_secs : undefined
const isQuiet = ({ code, details }: Refusal): boolean => code === 'service_unavailable' && 'quiet_hours' in details
const isLabel = (label: string): label is Label => (LABELS as readonly string[]).includes(label)
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Why a slot does not begin, which is no failure of its job. */
function whyNot(job: Job, slot: Slot, agent: Agent | undefined): Skip | undefined {
  if (!agent) return { reason: 'agent_removed', detail: 'its agent was removed' }
  if (agent.state !== 'Running')
    return { reason: 'agent_not_running', detail: `agent "${agent.name}" is ${agent.state.toLowerCase()}` }
  if (slot.kind === 'slot' && !job.enabled) return { reason: 'disabled', detail: 'the schedule was disabled meanwhile' }
  return undefined
}
