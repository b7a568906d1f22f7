import { notify } from 'svc/sdk'

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
