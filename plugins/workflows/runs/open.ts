import { pluginsLoaded, wallClock } from 'svc/internal'
import type { ServerSentEvent } from 'svc/sdk'
import type { Job, JobOutcome } from '../../queue/contract.ts'
import type { Definitions } from '../definition.ts'
import type { StepTypes } from '../steps/registry.ts'
import { RunChanges } from './changes.ts'
import { Engine } from './engine.ts'
import type { RunsContext } from './index.ts'
import { RunService } from './service.ts'
import { agentStep } from './steps/agent.ts'
import { approvalStep } from './steps/approval.ts'
import type { BuiltInStep } from './steps/built-in.ts'
import { httpStep } from './steps/http.ts'
import { toolStep } from './steps/tool.ts'
import { waitStep } from './steps/wait.ts'
import { workflowStep } from './steps/workflow.ts'
import { RunStore } from './store.ts'
import type { RunPage } from './store.ts'
import { followAll, followRun } from './stream.ts'
import { toItem, toView } from './views.ts'

export interface OpenRuns {
  readonly service: RunService
  readonly definitions: Definitions
  stepOf(name: string): BuiltInStep
  work(job: Job): Promise<JobOutcome>
  view(id: string): Promise<ReturnType<typeof toView>>
  list(page: RunPage): Promise<readonly ReturnType<typeof toItem>[]>
  follow(id: string, after: number, signal: AbortSignal): AsyncIterable<ServerSentEvent>
  followAll(signal: AbortSignal): AsyncIterable<ServerSentEvent>
  trim(signal: AbortSignal): Promise<void>
}

const SLICE = 100

export async function openRuns(
  ctx: RunsContext,
  definitions: Definitions,
  stepTypes: StepTypes,
  ended: (state: string) => void,
): Promise<OpenRuns> {
  const { config, db, hooks, log, services } = ctx
  const store = new RunStore(db, log)
  const changes = new RunChanges()
  const clock = wallClock
  const service = new RunService({
    ...services,
    store,
    definitions,
    hooks,
    clock,
    changes,
    approvals: () => ctx.optional('approvals'),
    limits: { activeRuns: config.max_active_runs, depth: config.max_depth },
  })
  const steps = builtInSteps(ctx, definitions, service)
  const engine = new Engine({
    ...services,
    store,
    stepTypes,
    unloaded: ctx.signal,
    hooks,
    clock,
    log,
    changes,
    limits: { outputChars: config.max_output_chars, renderedChars: config.max_rendered_chars },
    pluginsLoaded: (signal) => pluginsLoaded(services.daemon, 'workflows', signal),
    wake: (key) => service.wake(key),
    stopSteps: (id) => service.stopSteps(id),
    ended,
  })
  await service.hurryResumed()
  return {
    service,
    definitions,
    stepOf(name) {
      const step = steps.get(name)
      if (!step) throw new Error(`there is no built-in step type ${name}`)
      return step
    },
    work: (job) => engine.work(job),
    view: async (id) => toView(await service.require(id), await store.attempts(id)),
    list: async (page) => (await store.list(page)).map(toItem),
    follow: (id, after, signal) => followRun({ store, changes, clock }, id, after, signal),
    followAll: (signal) => followAll({ store, changes, clock }, signal),
    async trim(signal) {
      while (!signal.aborted) {
        const ids = await store.surplus(config.max_kept_runs, SLICE)
        if (ids.length === 0) return
        await store.commit(ids.flatMap((id) => store.remove(id)))
      }
    },
  }
}

function builtInSteps(ctx: RunsContext, definitions: Definitions, service: RunService) {
  const { config, db, fetch, log, services } = ctx
  const approvals = () => ctx.optional('approvals')
  const channels = () => ctx.optional('channels')
  const startChild: Parameters<typeof workflowStep>[0]['startChild'] = ({ parentRunId, parentKey, ...child }) =>
    service.start({ ...child, cause: `workflow ${parentRunId}` }, { runId: parentRunId, key: parentKey })
  const types = [
    agentStep({ ...services, db }),
    toolStep(services),
    workflowStep({ definitions, runs: service, startChild }),
    approvalStep({ ...services, approvals, channels, log }),
    waitStep(),
    httpStep({ ...services, fetch, maxBytes: config.max_output_chars * 4 }),
  ]
  return new Map(types.map((type) => [type.name, type]))
}
