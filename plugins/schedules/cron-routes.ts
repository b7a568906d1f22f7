import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { CronParams, CronView, EnableBody, JobBody, JobFields, ListQuery, SlotsQuery, SlotView } from './body.ts'
import type { LazyRuntime } from './routes.ts'

const code = 'cron_job_not_found'
const auth = 'bearer' as const
const errors = [code] as const

export function cronRoutes(runtime: LazyRuntime): readonly AnyRoute[] {
  return [
    listJobs(runtime),
    addJob(runtime),
    readJob(runtime),
    changeJob(runtime),
    removeJob(runtime),
    enableJob(runtime),
    jobStatus(runtime),
    listSlots(runtime),
  ]
}

const viewOf = async () => ({ code, view: (await import('./views.ts')).toCronJob }) as const
const load = async (runtime: LazyRuntime) => {
  const [opened, handlers, view] = await Promise.all([runtime(), import('./handlers.ts'), viewOf()])
  return { opened, handlers, view }
}

function listJobs(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/cron/jobs',
    summary: 'The cron jobs, the oldest first',
    description: 'Cron jobs and schedules are two views of the same jobs.',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: v.object({ jobs: v.array(CronView), total: v.number() }),
    async handle({ query }) {
      const { opened, handlers, view } = await load(runtime)
      return handlers.list(opened, view, query)
    },
  })
}

function addJob(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/cron/jobs',
    summary: 'Make a cron job',
    description: '`agent_id`, `schedule` and `prompt` (or `action`) are required. See `POST /api/schedules`.',
    auth,
    effect: 'lasting',
    cost: 10,
    body: JobBody,
    returns: CronView,
    status: 201,
    errors: ['agent_not_found', 'forbidden', 'conflict'],
    idempotent: true,
    example: { body: { name: 'news', schedule: '0 9 * * *', agent_id: 'assistant', prompt: 'What is new?' } },
    async handle({ body, effectId }) {
      const { opened, view } = await load(runtime)
      return view.view(await opened.schedules.create(body, effectId))
    },
  })
}

function readJob(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/cron/jobs/:id',
    summary: 'Read a cron job',
    auth,
    effect: 'read',
    cost: 2,
    params: CronParams,
    returns: CronView,
    errors,
    async handle({ params }) {
      const { opened, view } = await load(runtime)
      return view.view(await opened.schedules.require(code, params.id))
    },
  })
}

function changeJob(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/cron/jobs/:id',
    summary: 'Change a cron job',
    description: 'Fields that are left out stay.',
    auth,
    effect: 'lasting',
    cost: 10,
    params: CronParams,
    body: JobFields,
    async shown({ params }) {
      const { opened, handlers, view } = await load(runtime)
      return handlers.shown(opened, view, params.id)
    },
    returns: CronView,
    errors: [code, 'agent_not_found', 'conflict', 'forbidden'],
    example: { body: { schedule: '0 10 * * *' } },
    async handle({ params: { id }, body, unchanged }) {
      const { opened, handlers, view } = await load(runtime)
      if (unchanged) return view.view(await opened.schedules.require(code, id))
      return handlers.change(opened, view, id, body)
    },
  })
}

function removeJob(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/cron/jobs/:id',
    summary: 'Remove a cron job and its history',
    auth,
    effect: 'lasting',
    cost: 5,
    params: CronParams,
    returns: v.object({ status: v.literal('deleted'), job_id: v.string() }),
    errors,
    async handle({ params: { id } }) {
      await (await runtime()).schedules.remove(code, id)
      return { status: 'deleted' as const, job_id: id }
    },
  })
}

function enableJob(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/cron/jobs/:id/enable',
    summary: 'Enable or disable a cron job',
    description: 'Enabling resets the count of failures.',
    auth,
    effect: 'lasting',
    cost: 5,
    params: CronParams,
    body: EnableBody,
    returns: v.object({ id: v.string(), enabled: v.boolean(), next_run: v.nullable(v.string()) }),
    errors: [code, 'conflict'],
    example: { body: { enabled: false } },
    async handle({ params: { id }, body }) {
      const { opened, handlers, view } = await load(runtime)
      const { enabled, next_run } = await handlers.change(opened, view, id, body)
      return { id, enabled, next_run }
    },
  })
}

function jobStatus(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/cron/jobs/:id/status',
    summary: 'The last result and the next time of a cron job',
    auth,
    effect: 'read',
    cost: 2,
    params: CronParams,
    returns: v.object({
      job: CronView,
      one_shot: v.boolean(),
      last_status: v.nullable(v.string()),
      consecutive_errors: v.number(),
      last_run: v.nullable(v.string()),
      next_run: v.nullable(v.string()),
      last_slot: v.nullable(SlotView),
    }),
    errors,
    async handle({ params: { id } }) {
      const { opened, handlers, view } = await load(runtime)
      const job = view.view(await opened.schedules.require(code, id))
      const { slots } = await handlers.history(opened, code, id, { limit: '1' })
      const { one_shot, last_status, consecutive_errors, last_run, next_run } = job
      return { job, one_shot, last_status, consecutive_errors, last_run, next_run, last_slot: slots[0] ?? null }
    },
  })
}

function listSlots(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/cron/jobs/:id/slots',
    summary: 'The past slots of a cron job, the newest first',
    auth,
    effect: 'read',
    cost: 5,
    params: CronParams,
    query: SlotsQuery,
    returns: v.object({ slots: v.array(SlotView) }),
    errors,
    async handle({ params, query }) {
      const { opened, handlers } = await load(runtime)
      return handlers.history(opened, code, params.id, query)
    },
  })
}
