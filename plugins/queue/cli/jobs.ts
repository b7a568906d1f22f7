import * as v from 'valibot'
import { clientArgs, exits, Failure, findNearest, suggest } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

export const Job = v.looseObject({
  lane: v.string(),
  id: v.string(),
  state: v.string(),
  agent_id: v.nullable(v.string()),
  failures: v.number(),
  losses: v.number(),
  created_at: v.string(),
  due_at: v.string(),
  settled_at: v.nullable(v.string()),
  error: v.nullable(v.string()),
})
export type Job = v.InferOutput<typeof Job>
const Jobs = v.looseObject({ jobs: v.array(Job) })
export const Changed = v.looseObject({ status: v.string() })
const Lane = v.looseObject({
  lane: v.string(),
  running: v.number(),
  capacity: v.number(),
  depth: v.number(),
  dead: v.number(),
  oldest_secs: v.number(),
  throughput: v.number(),
  done_last_hour: v.number(),
  failed_last_hour: v.number(),
})
const Status = v.looseObject({ lanes: v.array(Lane) })

export const readStatus = (client: DaemonClient): Promise<v.InferOutput<typeof Status>> =>
  client.call('GET', '/api/queue/status', Status)
export const jobPath = (lane: string, id: string): string =>
  `/api/queue/${encodeURIComponent(lane)}/jobs/${encodeURIComponent(id)}`

export async function listJobs(client: DaemonClient, lane: string, state: string): Promise<readonly Job[]> {
  const path = `/api/queue/${encodeURIComponent(lane)}/jobs?state=${encodeURIComponent(state)}`
  return (await client.call('GET', path, Jobs)).jobs
}
/** The lanes there are, or the one that is named. Throws a `Failure` that names them. */
export async function requireLanes(client: DaemonClient, lane: string | undefined): Promise<readonly string[]> {
  const lanes = (await readStatus(client)).lanes.map((each) => each.lane)
  if (lane === undefined) return lanes
  if (lanes.includes(lane)) return [lane]
  throw new Failure(
    exits.notFound,
    `there is no lane "${lane}"${suggest(findNearest(lane, lanes))}`,
    lanes.length === 0 ? 'there are none' : `there are: ${lanes.join(', ')}`,
  )
}

export const laneArg = { type: 'positional', required: true, description: 'The lane, such as schedule' } as const
export const jobArgs = {
  lane: laneArg,
  id: { type: 'positional', required: true, description: 'Id of the job' },
  ...clientArgs,
} as const
