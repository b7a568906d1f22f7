import type { Daemon } from 'svc/internal'
import type { Hooks, Jobs, Logger, Metrics, PluginDatabase, Routes, Tools, Fetch, Dispose } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import { ApprovalResolved } from '../../approvals/contract.ts'
import type { Approvals } from '../../approvals/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { ChannelMessages } from '../../channels/contract.ts'
import type { Chat, ToolCalls, Turns } from '../../chat/contract.ts'
import { EventPublished } from '../../events/contract.ts'
import { DeviceWorkListed } from '../../pairing/contract.ts'
import type { Queue } from '../../queue/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { Settings } from '../config.ts'
import type { StepType, WorkflowRuns } from '../contract.ts'
import type { Definitions } from '../definition.ts'
import type { StepTypes } from '../steps/registry.ts'
import { LANE } from './lane.ts'
import type { OpenRuns } from './open.ts'
import { runRoutes } from './routes.ts'
import { BUILT_IN } from './steps/built-in.ts'
import type { BuiltInStep } from './steps/built-in.ts'
import { runTools } from './tools.ts'

export interface RunsContext {
  readonly config: Settings
  readonly db: PluginDatabase
  readonly fetch: Fetch
  readonly hooks: Hooks
  readonly jobs: Jobs
  readonly log: Logger
  readonly metrics: Metrics
  readonly routes: Routes
  readonly signal: AbortSignal
  readonly tools: Tools
  readonly services: {
    readonly agents: Agents
    readonly audit: Audit
    readonly chat: Chat
    readonly daemon: Daemon
    readonly queue: Queue
    readonly sessions: Sessions
    readonly toolCalls: ToolCalls
    readonly turns: Turns
  }
  optional(name: 'approvals'): Approvals | undefined
  optional(name: 'channels'): ChannelMessages | undefined
  own(label: string, dispose: Dispose): void
  run<T>(work: () => Promise<T> | T): Promise<T>
}
export interface RunsDeps {
  readonly definitions: () => Promise<Definitions>
  readonly stepTypes: StepTypes
}
export type LazyRuns = () => Promise<OpenRuns>

const TRIM_MS = 600_000

/** Registers all of runs; their code is imported on first use. */
export function createRuns(ctx: RunsContext, { definitions, stepTypes }: RunsDeps): WorkflowRuns {
  const { hooks, jobs, metrics, own, routes, services, tools } = ctx
  const ended = metrics.counter('svc_workflow_runs_total', 'Runs of workflows that ended, by state.')
  const load = async (): Promise<OpenRuns> => {
    const { openRuns } = await import('./open.ts')
    return openRuns(ctx, await definitions(), stepTypes, (state) => ended.add(1, { state: state.toLowerCase() }))
  }
  let opened: Promise<OpenRuns> | undefined
  const runs: LazyRuns = () => (opened ??= load())
  for (const declared of BUILT_IN) {
    const type = async (): Promise<BuiltInStep> => (await runs()).stepOf(declared.name)
    const check: StepType['check'] = async (definition) => (await type()).check(definition)
    own('step type', stepTypes.add({ ...declared, check, run: async (call) => (await type()).run(call) }))
  }
  routes.add(...runRoutes(runs))
  tools.add(...runTools(runs))
  own(
    'worker',
    services.queue.work(LANE, {
      run: async (job) => (await runs()).work(job),
      async dead({ id }, reason) {
        const { giveUp } = await import('./give-up.ts')
        return giveUp(ctx, runs, id, reason, () => ended.add(1, { state: 'failed' }))
      },
    }),
  )
  hooks.on(ApprovalResolved, async ({ approval }) => {
    // Of a step, or of the tool that one calls.
    const key = approval.tool === 'workflow_approval' ? approval.id : approval.turnId
    if (key !== '') await (await runs()).service.wake(key)
  })
  hooks.on(EventPublished, async ({ eventType, payload }) => (await runs()).service.publish(eventType, payload))
  hooks.on(DeviceWorkListed, async (asked) => {
    if (!asked.entries.some(({ event }) => event === 'workflow_changed')) return asked
    return (await import('./of-device.ts')).addRuns((await runs()).service, asked)
  })
  jobs.every('runs', TRIM_MS, async (signal) => (await runs()).trim(signal))
  return {
    async workflows() {
      const all = await (await definitions()).list()
      return all.map(({ id, name, description }) => ({ id, name, description }))
    },
    async resolve(idOrName, agentId) {
      const found = await definitions()
      if (agentId === undefined) return (await found.resolve(idOrName)).id
      const { resolveUnattended } = await import('../definitions/unattended.ts')
      const deps = { definitions: found, agents: services.agents, approvals: ctx.optional('approvals') }
      return resolveUnattended(deps, agentId, idOrName)
    },
    start: async (run) => (await runs()).service.start(run),
    find: async (id) => (await runs()).service.find(id),
    settled: async (id, signal) => (await runs()).service.settled(id, signal),
    cancel: async (id, reason) => (await runs()).service.cancel(id, reason),
    wake: async (key) => (await runs()).service.wake(key),
  }
}
