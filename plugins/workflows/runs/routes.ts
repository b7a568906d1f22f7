import * as v from 'valibot'
import { defineError, defineRoute, Refusal, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { v7 } from 'uuid'
import type { RunSummary } from '../contract.ts'
import { RUN_STATES } from '../definition.ts'
import { WorkflowParams } from '../definitions/schema.ts'
import type { LazyRuns } from './index.ts'
import { RunEvent, RunItem, RunView } from './views.ts'

export const WorkflowFailed = defineError('workflow_failed', {
  status: 422,
  format: 'coded',
  meaning: 'a step of the workflow failed',
})

const MAX_LIMIT = 500
const digits = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
const flag = v.picklist(['true', 'false'])
const RunParams = v.object({ run_id: v.string() })
const Page = v.object({
  limit: v.optional(digits, '200'),
  offset: v.optional(digits, '0'),
  state: v.optional(v.picklist(RUN_STATES)),
})
const pageOf = ({ limit, offset, state }: v.InferOutput<typeof Page>) => ({
  limit: Math.min(Number(limit), MAX_LIMIT),
  offset: Number(offset),
  state,
})
const Status = v.object({ status: v.string(), run_id: v.string() })
const Started = v.object({ run_id: v.string(), status: v.string() })
const Outcome = v.object({
  run_id: v.string(),
  output: v.nullable(v.string()),
  status: v.pipe(v.string(), v.description('`completed`; `paused` or `cancelled` when somebody did that meanwhile.')),
})

/** Interface 4.2 and API facts 2.3. */
export function runRoutes(runs: LazyRuns): readonly AnyRoute[] {
  return [
    startRoute(runs),
    listRoute(runs),
    allRoute(runs),
    readRoute(runs),
    ...changeRoutes(runs),
    rerunRoute(runs),
    followRoute(runs),
    followAllRoute(runs),
  ]
}

function startRoute(runs: LazyRuns): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/workflows/:id/run',
    summary: 'Run a workflow',
    description:
      'Answers when the run has ended. With `wait=false` it answers at once, with 202 and the id of the run. The run ' +
      'goes on whether or not the caller waits.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 50,
    params: WorkflowParams,
    query: v.object({ wait: v.optional(flag, 'true') }),
    body: v.object({ input: v.optional(v.string(), '') }),
    returns: Outcome,
    answers: { 202: { description: 'The run is on disk, with `wait=false`.', json: Started } },
    errors: ['workflow_not_found', 'rate_limit', WorkflowFailed],
    idempotent: true,
    example: {
      body: { input: 'The text to work on' },
      returns: { run_id: '0198c5a0-7e1c-7cc3-98c4-dc0c0c07398f', output: 'The result', status: 'completed' },
    },
    async handle({ params, query, body, signal, effectId }) {
      const { service } = await runs()
      const id = effectId ?? v7()
      await service.start({ id, workflowId: params.id, input: body.input, cause: 'api' })
      if (query.wait === 'false') return started(id)
      return outcomeOf(await service.settled(id, signal))
    },
    async recall(effectId, { query, signal }) {
      const { service } = await runs()
      if (!(await service.find(effectId))) return undefined
      return query.wait === 'false' ? started(effectId) : outcomeOf(await service.settled(effectId, signal))
    },
  })
}

function started(id: string) {
  return reply(JSON.stringify({ run_id: id, status: 'pending' }), { 'content-type': 'application/json' }, 202)
}
function outcomeOf({ id, state, output, error }: RunSummary) {
  if (state === 'Failed')
    throw new Refusal(WorkflowFailed, error ?? 'Workflow execution failed', { details: { run_id: id } })
  return { run_id: id, output: output ?? null, status: state.toLowerCase() }
}

function listRoute(runs: LazyRuns): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/workflows/:id/runs',
    summary: 'The runs of a workflow, newest first',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: WorkflowParams,
    query: Page,
    returns: v.array(RunItem),
    errors: ['workflow_not_found'],
    async handle({ params, query }) {
      const { list, definitions } = await runs()
      const items = await list({ workflowId: params.id, ...pageOf(query) })
      // Runs outlast their workflow.
      if (items.length === 0 && !(await definitions.find(params.id)))
        throw new Refusal('workflow_not_found', `There is no workflow ${params.id}`)
      return [...items]
    },
  })
}
function allRoute(runs: LazyRuns): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/workflows/runs',
    summary: 'The runs of all workflows, newest first',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: Page,
    returns: v.array(RunItem),
    async handle({ query }) {
      const { list } = await runs()
      return [...(await list(pageOf(query)))]
    },
  })
}
function readRoute(runs: LazyRuns): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/workflows/runs/:run_id',
    summary: 'A run with its steps: inputs, outputs, tokens, cost and times',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: RunParams,
    returns: RunView,
    errors: ['workflow_run_not_found'],
    handle: async ({ params }) => (await runs()).view(params.run_id),
  })
}

function changeRoutes(runs: LazyRuns): readonly AnyRoute[] {
  const change = (
    action: 'cancel' | 'pause' | 'resume',
    summary: string,
    status: string,
    handle: (id: string) => Promise<void>,
  ): AnyRoute =>
    defineRoute({
      method: 'POST',
      path: `/api/workflows/runs/:run_id/${action}`,
      summary,
      auth: 'bearer',
      effect: 'conversation',
      cost: 5,
      params: RunParams,
      returns: Status,
      errors: ['workflow_run_not_found', 'conflict'],
      async handle({ params: { run_id: id } }) {
        await handle(id)
        return { status, run_id: id }
      },
    })
  return [
    change('cancel', 'Cancel a run, with the step that runs', 'cancelled', async (id) => {
      const { service } = await runs()
      const { state } = await service.require(id)
      if (!(await service.cancel(id, 'over the API'))) throw new Refusal('conflict', `The run is ${state} already`)
    }),
    change('pause', 'Pause a run: the step that runs is finished, none is begun after it', 'paused', async (id) =>
      (await runs()).service.pause(id),
    ),
    change('resume', 'Go on with a paused run', 'running', async (id) => (await runs()).service.resume(id)),
  ]
}

function rerunRoute(runs: LazyRuns): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/workflows/runs/:run_id/rerun',
    summary: 'Run again from a step, with the results of those before it',
    description:
      'A new run of the definition as it was then. Without `step` it begins with the first one; a step of the mode ' +
      '`fan_out` brings all that ran beside it.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 50,
    params: RunParams,
    body: v.object({ step: v.optional(v.string()) }),
    returns: Started,
    status: 202,
    errors: ['workflow_run_not_found', 'conflict', 'rate_limit'],
    idempotent: true,
    async handle({ params, body, effectId }) {
      const runId = await (await runs()).service.rerun(params.run_id, body.step, effectId)
      return { run_id: runId, status: 'pending' }
    },
    async recall(effectId) {
      const run = await (await runs()).service.find(effectId)
      return run && { run_id: run.id, status: 'pending' }
    },
  })
}

function followRoute(runs: LazyRuns): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/workflows/runs/:run_id/events',
    summary: 'Follow a run: what happened so far, then what happens until it has ended',
    description:
      '`step` for each step that began, waits or ended, then `run`. A client that connects again with `Last-Event-ID` ' +
      'gets what it missed.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: RunParams,
    returns: RunEvent,
    streams: RunEvent,
    feed: true,
    errors: ['workflow_run_not_found'],
    async handle({ params: { run_id: id }, header, signal }) {
      const { service, follow } = await runs()
      await service.require(id)
      const last = header('last-event-id') ?? ''
      return follow(id, /^\d{1,9}$/.test(last) ? Number(last) : 0, signal)
    },
  })
}
function followAllRoute(runs: LazyRuns): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/workflows/runs/events',
    summary: 'Follow all runs: those that go on, then each that changes',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: RunEvent,
    streams: RunEvent,
    feed: true,
    handle: async ({ signal }) => (await runs()).followAll(signal),
  })
}
