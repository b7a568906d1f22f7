import * as v from 'valibot'
import { defineRoute, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { EnableBody, JobBody, JobFields, ListQuery, SlotsQuery, SlotView } from './body.ts'
import { cronJobs, schedules } from './route-views.ts'
import type { JobView } from './route-views.ts'
import type { Runtime } from './runtime.ts'

export type LazyRuntime = () => Promise<Runtime>

const auth = 'bearer' as const
const Ran = v.object({
  status: v.string(),
  schedule_id: v.string(),
  agent_id: v.string(),
  turn_id: v.nullable(v.string()),
  response: v.exactOptional(v.string()),
  error: v.exactOptional(v.string()),
  workflow_id: v.exactOptional(v.string()),
  run_id: v.exactOptional(v.string()),
  output: v.exactOptional(v.string()),
})

/** Interface 4.2: schedules and cron jobs are two views of the same jobs. */
export function jobRoutes(runtime: LazyRuntime, leaving: AbortSignal): readonly AnyRoute[] {
  const views = [schedules, cronJobs].flatMap((view) => [
    listJobs(runtime, view),
    addJob(runtime, view),
    readJob(runtime, view),
    changeJob(runtime, view),
    removeJob(runtime, view),
    enableJob(runtime, view),
    listSlots(runtime, view),
  ])
  return [...views, runSchedule(runtime, leaving), jobStatus(runtime)]
}

const load = async (runtime: LazyRuntime, { shapes }: JobView) => {
  const [opened, handlers, shape] = await Promise.all([runtime(), import('./handlers.ts'), shapes()])
  return { ...opened, handlers, shape }
}

function listJobs(runtime: LazyRuntime, view: JobView): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: view.path,
    summary: `The ${view.noun}s, the oldest first`,
    description: 'Schedules and cron jobs are two views of the same jobs.',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: view.listed,
    async handle({ query }) {
      const { handlers, shape, ...opened } = await load(runtime, view)
      const { jobs, total } = await handlers.list(opened, query)
      return shape.list(jobs, total)
    },
  })
}

function addJob(runtime: LazyRuntime, view: JobView): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: view.path,
    summary: view.make,
    description: view.required,
    auth,
    effect: 'lasting',
    cost: 10,
    body: JobBody,
    returns: view.item,
    status: 201,
    errors: ['agent_not_found', 'workflow_not_found', 'forbidden', 'conflict'],
    idempotent: true,
    keepsAnswer: false,
    example: { body: view.example },
    async handle({ body, effectId }) {
      const opened = await load(runtime, view)
      return opened.shape.item(await opened.schedules.create(body, effectId))
    },
    async recall(effectId) {
      const { schedules: jobs, shape } = await load(runtime, view)
      const job = await jobs.find(effectId)
      return job && shape.item(job)
    },
  })
}

function readJob(runtime: LazyRuntime, view: JobView): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: `${view.path}/:id`,
    summary: `Read a ${view.noun}`,
    auth,
    effect: 'read',
    cost: 2,
    params: view.params,
    returns: view.item,
    errors: [view.code],
    async handle({ params }) {
      const opened = await load(runtime, view)
      return opened.shape.item(await opened.schedules.require(view.code, params.id))
    },
  })
}

function changeJob(runtime: LazyRuntime, view: JobView): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: `${view.path}/:id`,
    summary: `Change a ${view.noun}`,
    description: 'Fields that are left out stay.',
    auth,
    effect: 'lasting',
    cost: 10,
    params: view.params,
    body: JobFields,
    async shown({ params }) {
      const { handlers, shape, schedules: jobs } = await load(runtime, view)
      return { fields: shape.item(await jobs.require(view.code, params.id)), measured: handlers.MEASURED }
    },
    returns: view.changed,
    errors: [view.code, 'agent_not_found', 'workflow_not_found', 'conflict', 'forbidden'],
    example: { body: { enabled: false } },
    async handle({ params: { id }, body, unchanged }) {
      const { shape, schedules: jobs } = await load(runtime, view)
      return shape.changed(unchanged ? await jobs.require(view.code, id) : await jobs.change(view.code, id, body))
    },
  })
}

function removeJob(runtime: LazyRuntime, view: JobView): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: `${view.path}/:id`,
    summary: `Remove a ${view.noun} and its history`,
    description: 'A run that is going on is stopped.',
    auth,
    effect: 'lasting',
    cost: 5,
    params: view.params,
    returns: view.removed,
    errors: [view.code],
    async handle({ params: { id } }) {
      const { shape, schedules: jobs } = await load(runtime, view)
      await jobs.remove(view.code, id)
      return shape.removed(id)
    },
  })
}

function enableJob(runtime: LazyRuntime, view: JobView): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: `${view.path}/:id/enable`,
    summary: `Enable or disable a ${view.noun}`,
    description: 'Enabling resets the count of failures. Slots of the time in between are not made up for.',
    auth,
    effect: 'lasting',
    cost: 5,
    params: view.params,
    body: EnableBody,
    returns: view.enabled,
    errors: [view.code, 'conflict'],
    example: { body: { enabled: true } },
    async handle({ params, body }) {
      const { shape, schedules: jobs } = await load(runtime, view)
      return shape.enabled(await jobs.change(view.code, params.id, body))
    },
  })
}

function listSlots(runtime: LazyRuntime, view: JobView): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: `${view.path}/:id/slots`,
    summary: `The past slots of a ${view.noun}, the newest first`,
    description: 'Each with its result, or with the reason for which it was skipped, and how late it began.',
    auth,
    effect: 'read',
    cost: 5,
    params: view.params,
    query: SlotsQuery,
    returns: v.object({ slots: v.array(SlotView) }),
    errors: [view.code],
    async handle({ params, query }) {
      const { handlers, ...opened } = await load(runtime, view)
      return { slots: await handlers.history(opened, view.code, params.id, query) }
    },
  })
}

function toReply({ isDone, answer }: { readonly isDone: boolean; readonly answer: v.InferOutput<typeof Ran> }) {
  return isDone ? answer : reply(JSON.stringify(answer), { 'content-type': 'application/json' }, 500)
}
function runSchedule(runtime: LazyRuntime, leaving: AbortSignal): AnyRoute {
  const { path, code, params: Params } = schedules
  return defineRoute({
    method: 'POST',
    path: `${path}/:id/run`,
    summary: 'Run a schedule now and wait for the result',
    description: 'It is no slot of the schedule: the next one comes as usual. The result is delivered like any other.',
    auth,
    effect: 'conversation',
    cost: 50,
    params: Params,
    returns: Ran,
    answers: { 500: { description: 'The agent could not answer', json: Ran } },
    errors: [code, 'conflict', 'service_unavailable'],
    idempotent: true,
    async handle({ params: { id }, signal, effectId }) {
      const { handlers, ...opened } = await load(runtime, schedules)
      // With a key the answer is kept for whoever asks again, also when this client leaves.
      const until = effectId === undefined ? signal : leaving
      return toReply(await handlers.runNow(opened, code, id, { signal: until, effectId }))
    },
    async recall(effectId, { params: { id } }) {
      const { handlers, ...opened } = await load(runtime, schedules)
      const found = await handlers.recallRun(opened, code, id, { signal: leaving, effectId })
      return found && toReply(found)
    },
  })
}

function jobStatus(runtime: LazyRuntime): AnyRoute {
  const { path, code, params: Params, item } = cronJobs
  const orNull = v.nullable(v.string())
  return defineRoute({
    method: 'GET',
    path: `${path}/:id/status`,
    summary: 'The last result and the next time of a cron job',
    auth,
    effect: 'read',
    cost: 2,
    params: Params,
    returns: v.object({
      job: item,
      one_shot: v.boolean(),
      last_status: orNull,
      consecutive_errors: v.number(),
      last_run: orNull,
      next_run: orNull,
      last_slot: v.nullable(SlotView),
    }),
    errors: [code],
    async handle({ params: { id } }) {
      const { handlers, ...opened } = await load(runtime, cronJobs)
      return handlers.status(opened, code, id)
    },
  })
}
