import * as v from 'valibot'
import { defineRoute, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import {
  EnableBody,
  JobBody,
  JobFields,
  ListQuery,
  ScheduleParams,
  ScheduleView,
  SlotsQuery,
  SlotView,
} from './body.ts'
import type { Runtime } from './runtime.ts'

export type LazyRuntime = () => Promise<Runtime>

const code = 'schedule_not_found'
const auth = 'bearer' as const
const errors = [code] as const
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

export function scheduleRoutes(runtime: LazyRuntime, leaving: AbortSignal): readonly AnyRoute[] {
  return [
    listSchedules(runtime),
    addSchedule(runtime),
    readSchedule(runtime),
    changeSchedule(runtime),
    removeSchedule(runtime),
    enableSchedule(runtime),
    runSchedule(runtime, leaving),
    listSlots(runtime),
  ]
}

const viewOf = async () => ({ code, view: (await import('./views.ts')).toSchedule }) as const
const load = async (runtime: LazyRuntime) => {
  const [opened, handlers, view] = await Promise.all([runtime(), import('./handlers.ts'), viewOf()])
  return { opened, handlers, view }
}

function listSchedules(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/schedules',
    summary: 'The schedules, the oldest first',
    description: 'Schedules and cron jobs are two views of the same jobs.',
    auth,
    effect: 'read',
    cost: 5,
    query: ListQuery,
    returns: v.object({ schedules: v.array(ScheduleView), total: v.number() }),
    async handle({ query }) {
      const { opened, handlers, view } = await load(runtime)
      const { jobs, total } = await handlers.list(opened, view, query)
      return { schedules: jobs, total }
    },
  })
}

function addSchedule(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/schedules',
    summary: 'Ask an agent something at certain times',
    description:
      '`agent_id`, `cron` and `prompt` are required. `cron` has five fields (minute, hour, day of the month, month, ' +
      'day of the week) in the time zone `tz`; `schedule` may be `{kind: "every", every_secs}` or `{kind: "at", at}` ' +
      'instead. Every slot runs once. `missed` says what becomes of slots at which the daemon did not run.',
    auth,
    effect: 'lasting',
    cost: 10,
    body: JobBody,
    returns: ScheduleView,
    status: 201,
    errors: ['agent_not_found', 'forbidden', 'conflict'],
    idempotent: true,
    example: { body: { agent_id: 'assistant', cron: '30 9 * * MON-FRI', tz: 'Europe/Berlin', prompt: 'What is new?' } },
    async handle({ body, effectId }) {
      const { opened, view } = await load(runtime)
      return view.view(await opened.schedules.create(body, effectId))
    },
  })
}

function readSchedule(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/schedules/:id',
    summary: 'Read a schedule',
    auth,
    effect: 'read',
    cost: 2,
    params: ScheduleParams,
    returns: ScheduleView,
    errors,
    async handle({ params }) {
      const { opened, view } = await load(runtime)
      return view.view(await opened.schedules.require(code, params.id))
    },
  })
}

function changeSchedule(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/schedules/:id',
    summary: 'Change a schedule',
    description: 'Fields that are left out stay.',
    auth,
    effect: 'lasting',
    cost: 10,
    params: ScheduleParams,
    body: JobFields,
    async shown({ params }) {
      const { opened, handlers, view } = await load(runtime)
      return handlers.shown(opened, view, params.id)
    },
    returns: v.looseObject({ ...ScheduleView.entries, status: v.literal('updated'), schedule_id: v.string() }),
    errors: [code, 'agent_not_found', 'conflict', 'forbidden'],
    example: { body: { enabled: false } },
    async handle({ params: { id }, body, unchanged }) {
      const { opened, handlers, view } = await load(runtime)
      const changed = unchanged
        ? view.view(await opened.schedules.require(code, id))
        : await handlers.change(opened, view, id, body)
      return { ...changed, status: 'updated' as const, schedule_id: id }
    },
  })
}

function removeSchedule(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/schedules/:id',
    summary: 'Remove a schedule and its history',
    auth,
    effect: 'lasting',
    cost: 5,
    params: ScheduleParams,
    returns: v.object({ status: v.literal('removed'), schedule_id: v.string() }),
    errors,
    async handle({ params: { id } }) {
      await (await runtime()).schedules.remove(code, id)
      return { status: 'removed' as const, schedule_id: id }
    },
  })
}

function enableSchedule(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/schedules/:id/enable',
    summary: 'Enable or disable a schedule',
    description: 'Enabling resets the count of failures. Slots of the time in between are not made up for.',
    auth,
    effect: 'lasting',
    cost: 5,
    params: ScheduleParams,
    body: EnableBody,
    returns: ScheduleView,
    errors: [code, 'conflict'],
    example: { body: { enabled: true } },
    async handle({ params, body }) {
      const { opened, handlers, view } = await load(runtime)
      return handlers.change(opened, view, params.id, body)
    },
  })
}

function toReply({ isDone, answer }: { readonly isDone: boolean; readonly answer: v.InferOutput<typeof Ran> }) {
  return isDone ? answer : reply(JSON.stringify(answer), { 'content-type': 'application/json' }, 500)
}
function runSchedule(runtime: LazyRuntime, leaving: AbortSignal): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/schedules/:id/run',
    summary: 'Run a schedule now and wait for the result',
    description: 'It is no slot of the schedule: the next one comes as usual. The result is delivered like any other.',
    auth,
    effect: 'conversation',
    cost: 50,
    params: ScheduleParams,
    returns: Ran,
    answers: { 500: { description: 'The agent could not answer', json: Ran } },
    errors: [code, 'conflict', 'service_unavailable'],
    idempotent: true,
    async handle({ params, signal, effectId }) {
      const { opened, handlers } = await load(runtime)
      // With a key the answer is kept for whoever asks again, also when this client leaves.
      const until = effectId === undefined ? signal : leaving
      return toReply(await handlers.runNow(opened, code, params.id, { signal: until, effectId }))
    },
    async recall(effectId, { params }) {
      const { opened, handlers } = await load(runtime)
      const found = await handlers.recallRun(opened, code, params.id, { signal: leaving, effectId })
      return found && toReply(found)
    },
  })
}

function listSlots(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/schedules/:id/slots',
    summary: 'The past slots of a schedule, the newest first',
    description: 'Each with its result, or with the reason for which it was skipped, and how late it began.',
    auth,
    effect: 'read',
    cost: 5,
    params: ScheduleParams,
    query: SlotsQuery,
    returns: v.object({ slots: v.array(SlotView) }),
    errors,
    async handle({ params, query }) {
      const { opened, handlers } = await load(runtime)
      return handlers.history(opened, code, params.id, query)
    },
  })
}
