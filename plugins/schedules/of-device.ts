import type { DeviceWork, DeviceWorkAsked } from '../pairing/contract.ts'
import { turnIdOf } from './running/agent-turn.ts'
import type { Runtime } from './runtime.ts'

/** The newest runs of a schedule whose turns are looked at. */
const MAX_SLOTS = 1_000

/** Adds the schedules that a device made. */
export async function addSchedules(
  { jobs, slots, schedules }: Pick<Runtime, 'jobs' | 'slots' | 'schedules'>,
  asked: DeviceWorkAsked,
): Promise<DeviceWorkAsked> {
  const found: DeviceWork[] = []
  const turns: string[] = []
  for (const { event, details } of asked.entries) {
    const id =
      event === 'schedule_changed' ? /^schedule (\S+) ".*" for agent ".*" was made$/s.exec(details)?.[1] : undefined
    const job = id === undefined ? undefined : await jobs.find(id)
    if (!job) continue
    for (const slot of await slots.list(job.id, undefined, MAX_SLOTS))
      turns.push(turnIdOf(slot), ...(slot.workflowRunId === undefined ? [] : [slot.workflowRunId]))
    if (!job.enabled || job.endedAt !== undefined) continue
    found.push({
      kind: 'schedule',
      id: job.id,
      name: job.name,
      agentId: job.agentId,
      statements: schedules.disabling(job, asked.reason),
      after: () => schedules.stopRuns(job.id, asked.reason),
    })
  }
  return { ...asked, found: [...asked.found, ...found], turns: [...asked.turns, ...turns] }
}
