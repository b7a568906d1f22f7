import { toIso } from 'svc/internal'
import type { JobBody } from './body.ts'
import type { Wakeup, Wakeups } from './contract.ts'
import type { Scheduler } from './scheduler.ts'
import type { Schedules } from './service.ts'

/** Schedules that other plugins keep for agents that they make. */
export function createWakeups(schedules: Schedules, scheduler: Pick<Scheduler, 'wake'>): Wakeups {
  return {
    async prepare({ id, name, agent, when, prompt, onBehalf, labels }) {
      const body: JobBody = { name, ...timingOf(when), prompt, session_mode: 'new' }
      const maker = onBehalf?.at(-1)
      const author = {
        onBehalf: onBehalf ?? [],
        labels: labels ?? [],
        ...(maker === undefined ? {} : { agentId: maker }),
      }
      return (await schedules.prepare(body, id, agent, author)).statements
    },
    async check(when) {
      schedules.check(timingOf(when))
    },
    async begin() {
      scheduler.wake()
    },
    checkRoom: () => schedules.checkRoom(),
    async find(id) {
      const job = await schedules.find(id)
      if (!job || job.endedAt !== undefined) return undefined
      const iso = (time: number | undefined) => (time === undefined ? null : toIso(time))
      const error = job.lastStatus?.startsWith('error: ') ? job.lastStatus.slice('error: '.length) : null
      return {
        enabled: job.enabled,
        nextRun: iso(job.nextRun),
        lastRun: iso(job.lastRun),
        lastError: error,
        runs: job.runs,
        failures: job.failures,
        reason: job.reason ?? null,
      }
    },
    async change(id, { enabled, when }) {
      await schedules.change('schedule_not_found', id, {
        ...(enabled === undefined ? {} : { enabled }),
        ...(when === undefined ? {} : timingOf(when)),
      })
    },
  }
}

function timingOf(when: Wakeup): Pick<JobBody, 'schedule'> {
  if ('every_secs' in when) return { schedule: { kind: 'every', every_secs: when.every_secs } }
  return { schedule: { kind: 'cron', expr: when.cron, tz: when.tz ?? 'UTC' } }
}
