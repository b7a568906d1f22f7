import { defineService, notify } from 'svc/sdk'
import type { Statement } from 'svc/sdk'

/** When an agent is woken: at intervals of seconds, or by a cron expression in a time zone. */
export type Wakeup = { readonly every_secs: number } | { readonly cron: string; readonly tz?: string | undefined }
/** A schedule that another plugin keeps for an agent that it makes. */
export interface NewWakeup {
  readonly id: string
  readonly name: string
  readonly agent: { readonly id: string; readonly name: string }
  readonly when: Wakeup
  /** The message of each turn, which has a session of its own. */
  readonly prompt: string
  /** The agents that asked for it, the one that made it last: its turns may do no more than each of them. */
  readonly onBehalf?: readonly string[] | undefined
  readonly labels?: readonly string[] | undefined
}
export interface WakeupState {
  readonly enabled: boolean
  /** ISO 8601 UTC. */
  readonly nextRun: string | null
  readonly lastRun: string | null
  /** Why the last run failed; `null` when it did not. */
  readonly lastError: string | null
  readonly runs: number
  /** Consecutive failures. */
  readonly failures: number
  /** Why it is disabled. */
  readonly reason: string | null
}
/** Schedules of agents that other plugins make. */
export interface Wakeups {
  /** Throws `invalid_request` that names what is wrong with the time. */
  check(when: Wakeup): Promise<void>
  /** For the batch that makes the agent. Throws `invalid_request` that names what is wrong. */
  prepare(wakeup: NewWakeup): Promise<readonly Statement[]>
  /** After that batch. */
  begin(): Promise<void>
  /** Why that batch may have failed: throws `rate_limit` when there are too many schedules. */
  checkRoom(): Promise<void>
  find(id: string): Promise<WakeupState | undefined>
  /** What is left out stays; enabling forgets failures. Throws `schedule_not_found`. */
  change(id: string, change: { readonly enabled?: boolean; readonly when?: Wakeup | undefined }): Promise<void>
}
export const Wakeups = defineService<Wakeups>()('wakeups')

/** Cron jobs that come from elsewhere. */
export interface CronJobs {
  /**
   * Makes one, as `POST /api/cron/jobs` does. `false` when there is one of this id, which stays as it is. Throws
   * `invalid_request` that names the field, `agent_not_found`, `rate_limit` when there are too many. `isCheck` makes nothing, and
   * asks for no agent.
   */
  add(id: string, body: Readonly<Record<string, unknown>>, options?: { readonly isCheck?: boolean }): Promise<boolean>
}
export const CronJobs = defineService<CronJobs>()('cron-jobs')

/** A slot of a schedule or cron job has ended, or will not run. */
export const SlotEnded = notify<{
  readonly jobId: string
  readonly name: string
  readonly agentId: string
  /** When it was due, ISO 8601 UTC. */
  readonly slot: string
  /** `manual`: somebody asked for the run. */
  readonly kind: 'slot' | 'manual'
  readonly state: 'done' | 'failed' | 'skipped' | 'cancelled'
  readonly turnId: string | null
  /** Why it failed or was skipped. */
  readonly error: string | null
}>('schedules:slot-ended')

/** A job failed so often that it does not run any more until somebody enables it. */
export const JobDisabled = notify<{
  readonly jobId: string
  readonly name: string
  readonly agentId: string
  readonly failures: number
  /** Why it failed last. */
  readonly error: string
}>('schedules:job-disabled')

/** A job whose action is a `system_event` is due. After a crash it may come again, with the same id. */
export const SystemEventDue = notify<{
  /** A UUID of this slot. */
  readonly id: string
  readonly jobId: string
  readonly name: string
  readonly agentId: string
  readonly text: string
  /** Where the text comes from, when an agent made the job; such as `ExternalNetwork`. */
  readonly labels: readonly string[]
  /** When it was due, ISO 8601 UTC. */
  readonly slot: string
}>('schedules:system-event')
