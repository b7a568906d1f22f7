import { toIso, wallClock } from 'svc/internal'
import type { Clock, TellChange } from 'svc/internal'
import type { Hooks, Logger, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Chat, Turns } from '../chat/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { ResultDelivery } from '../result-delivery/contract.ts'
import type { WorkflowRuns } from '../workflows/contract.ts'
import type { Settings } from './config.ts'
import { JobDisabled, SlotEnded, SystemEventDue } from './contract.ts'
import type { Wakeups } from './contract.ts'
import { createWakeups } from './wakeups.ts'
import type { Job, Slot } from './job.ts'
import { JobStore } from './jobs/store.ts'
import { ManifestSchedules } from './of-manifest.ts'
import { Scheduler } from './scheduler.ts'
import { Schedules } from './service.ts'
import { SlotStore } from './slots/store.ts'
import type { SlotOutcome } from './running/ends.ts'
import { ManualRuns } from './running/manual-runs.ts'
import { SlotRunner } from './running/slot-runner.ts'

export interface RuntimeDeps {
  readonly db: PluginDatabase
  readonly config: Settings
  readonly hooks: Pick<Hooks, 'emit'>
  readonly log: Logger
  readonly agents: Agents
  readonly audit: Audit
  readonly queue: Queue
  readonly turns: Turns
  readonly chat: Chat
  readonly delivery: ResultDelivery
  readonly inference: () => Inference | undefined
  readonly workflows: () => WorkflowRuns | undefined
  /** Who waits for a turn by a message, and by a task. */
  readonly background: (work: () => Promise<void>) => void
  /** A slot was started, skipped or has ended. */
  readonly counted: (outcome: string, count: number) => void
  readonly disabled: () => void
  /** Tells the other daemons on the database that a job is due earlier than before. */
  readonly tell: TellChange
  readonly clock?: Clock
}
export interface Runtime {
  readonly jobs: JobStore
  readonly slots: SlotStore
  readonly schedules: Schedules
  readonly scheduler: Scheduler
  readonly runner: SlotRunner
  readonly manual: ManualRuns
  readonly wakeups: Wakeups
  readonly manifests: ManifestSchedules
}

/** All that works on jobs, once there is one. */
export function createRuntime({ db, config: settings, clock = wallClock, ...deps }: RuntimeDeps): Runtime {
  const { hooks, background, counted } = deps
  const jobs = new JobStore(db, deps.log)
  const slots = new SlotStore(db, deps.log)
  const manual = new ManualRuns({ ...deps, jobs, slots, settings, clock })
  const scheduler = new Scheduler({
    ...deps,
    jobs,
    slots,
    settings,
    clock,
    cancelled({ workflowRunId: runId }) {
      if (runId === undefined) return
      background(async () => void (await deps.workflows()?.cancel(runId, 'the slot of its schedule was cancelled')))
    },
    skipped({ id, name, agentId }, { slotAt, reason, detail }) {
      const event = { jobId: id, name, agentId, slot: toIso(slotAt), kind: 'slot', state: 'skipped' } as const
      background(() => hooks.emit(SlotEnded, { ...event, turnId: null, error: `${reason}: ${detail}` }))
    },
  })
  const ended = ({ id, name, agentId }: Job, { kind, slotAt, runId }: Slot, end: SlotOutcome): void => {
    manual.tell(runId)
    counted(end.state, 1)
    const event = { jobId: id, name, agentId, slot: toIso(slotAt), kind, state: end.state }
    background(() => hooks.emit(SlotEnded, { ...event, turnId: end.turnId ?? null, error: end.error ?? null }))
  }
  const runner = new SlotRunner({
    ...deps,
    jobs,
    slots,
    settings,
    clock,
    ended,
    left: ({ runId }) => manual.tell(runId),
    disabled({ id, name, agentId }, failures, error) {
      deps.disabled()
      background(() => hooks.emit(JobDisabled, { jobId: id, name, agentId, failures, error }))
    },
    async systemEvent({ id: jobId, name, agentId, labels }, { runId: id, slotAt }, text) {
      await hooks.emit(SystemEventDue, { id, jobId, name, agentId, text, labels, slot: toIso(slotAt) })
    },
  })
  const schedules = new Schedules({
    ...deps,
    jobs,
    slots,
    settings,
    clock,
    gone: (runId) => manual.tell(runId),
    wake: () => scheduler.wake(),
  })
  const manifests = new ManifestSchedules({ schedules, background, wake: () => scheduler.wake() })
  const wakeups = createWakeups(schedules, scheduler)
  return { jobs, slots, schedules, scheduler, runner, manual, wakeups, manifests }
}
