import * as v from 'valibot'
import { toIso } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Settings } from './config.ts'
import type { JobRow } from './contract.ts'
import { STATES } from './states.ts'
import type { DatabaseQueue } from './service.ts'

const MAX_LIMIT = 500
const count = v.number()
const digits = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
const text = v.nullable(v.string())

const JobView = v.object({
  lane: v.string(),
  id: v.string(),
  state: v.picklist(STATES),
  group: text,
  agent_id: text,
  failures: count,
  losses: count,
  created_at: v.string(),
  due_at: v.string(),
  settled_at: text,
  error: text,
})
const QueueStatus = v.object({
  depth: v.pipe(count, v.description('Jobs that wait, due or not.')),
  running: count,
  dead: count,
  oldest_secs: v.pipe(count, v.description('How long the job that is due first has waited.')),
  throughput: v.pipe(count, v.description('Jobs done in the last minute.')),
  done_last_hour: count,
  failed_last_minute: v.pipe(count, v.description('Jobs that were given up: they are dead.')),
  failed_last_hour: count,
  lanes: v.array(
    v.object({
      lane: v.string(),
      active: v.pipe(count, v.description('Jobs that run in this daemon.')),
      running: v.pipe(count, v.description('Jobs that run in all daemons on the database.')),
      capacity: count,
      depth: count,
      dead: count,
      oldest_secs: v.pipe(count, v.description('How long the first job that is due has waited.')),
      throughput: count,
      done_last_hour: count,
      failed_last_minute: count,
      failed_last_hour: count,
    }),
  ),
  config: v.object({
    max_depth_per_agent: count,
    max_depth_global: count,
    default_concurrency: count,
    concurrency: v.record(v.string(), count),
  }),
})

const JobParams = v.object({ lane: v.string(), id: v.string() })
const Changed = v.object({ status: v.string(), lane: v.string(), id: v.string() })

/** Interface 4.11, `/api/queue/status`; the other rows are for operators. */
export function queueRoutes(queue: DatabaseQueue, settings: Settings, audit: Audit): readonly AnyRoute[] {
  return [
    statusRoute(queue, settings),
    listRoute(queue),
    readRoute(queue),
    retryRoute(queue, audit),
    cancelRoute(queue, audit),
  ]
}

function statusRoute(queue: DatabaseQueue, settings: Settings): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/queue/status',
    summary: 'Depth and throughput of the queue, by lane',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: QueueStatus,
    async handle() {
      const lanes = await queue.status()
      const { lanesOf, totalOf } = await import('./status.ts')
      return {
        ...totalOf(lanes),
        lanes: lanesOf(lanes),
        config: {
          max_depth_per_agent: settings.max_depth_per_agent,
          max_depth_global: settings.max_depth,
          default_concurrency: settings.default_concurrency,
          concurrency: settings.concurrency,
        },
      }
    },
  })
}

function listRoute(queue: DatabaseQueue): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/queue/:lane/jobs',
    summary: 'The jobs of a lane in one state, those that are due last first',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: v.object({ lane: v.string() }),
    query: v.object({
      state: v.optional(v.picklist(STATES), 'pending'),
      limit: v.optional(digits, '50'),
      offset: v.optional(digits, '0'),
    }),
    returns: v.object({ jobs: v.array(JobView) }),
    async handle({ params, query }) {
      const limit = Math.min(Number(query.limit), MAX_LIMIT)
      const found = await queue.list(params.lane, query.state, limit, Number(query.offset))
      return { jobs: found.map(toView) }
    },
  })
}

function readRoute(queue: DatabaseQueue): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/queue/:lane/jobs/:id',
    summary: 'Read a job',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: JobParams,
    returns: JobView,
    errors: ['not_found'],
    handle: async ({ params: { lane, id } }) => toView(await requireJob(queue, lane, id)),
  })
}

function retryRoute(queue: DatabaseQueue, audit: Audit): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/queue/:lane/jobs/:id/retry',
    summary: 'Run a dead or cancelled job again',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: JobParams,
    returns: Changed,
    errors: ['not_found', 'conflict'],
    async handle({ params: { lane, id } }) {
      const { state } = await requireJob(queue, lane, id)
      if (state !== 'dead' && state !== 'cancelled')
        throw new Refusal('conflict', `The job is ${state}; only one that is dead or cancelled can be run again`)
      await queue.retry(lane, id, [
        audit.entry({ event: 'config_change', details: `job ${id} of lane ${lane} is to be run again` }),
      ])
      return { status: 'retried', lane, id }
    },
  })
}

function cancelRoute(queue: DatabaseQueue, audit: Audit): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/queue/:lane/jobs/:id',
    summary: 'Cancel a job that waits or runs',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: JobParams,
    returns: Changed,
    errors: ['not_found', 'conflict'],
    async handle({ params: { lane, id } }) {
      const { state } = await requireJob(queue, lane, id)
      if (!(await queue.cancel(lane, id))) throw new Refusal('conflict', `The job is ${state} already`)
      await audit.write({ event: 'config_change', details: `job ${id} of lane ${lane} is cancelled` })
      return { status: 'cancelled', lane, id }
    },
  })
}

async function requireJob(queue: DatabaseQueue, lane: string, id: string): Promise<JobRow> {
  const job = await queue.find(lane, id)
  if (!job) throw new Refusal('not_found', `There is no job ${id} in lane ${lane}`)
  return job
}

function toView(job: JobRow) {
  return {
    lane: job.lane,
    id: job.id,
    state: job.state,
    group: job.group ?? null,
    agent_id: job.agentId ?? null,
    failures: job.failures,
    losses: job.losses,
    created_at: toIso(job.createdAt),
    due_at: toIso(job.dueAt),
    settled_at: job.settledAt === undefined ? null : toIso(job.settledAt),
    error: job.error ?? null,
  }
}
