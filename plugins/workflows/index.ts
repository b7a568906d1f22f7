import { Daemon, homeId, pluginsLoaded } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { PluginContext } from 'svc/sdk'
import { AgentSpawned, Agents } from '../agents/contract.ts'
import { Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { ChannelMessages } from '../channels/contract.ts'
import { Chat, ToolCalls, Turns } from '../chat/contract.ts'
import { Inference } from '../providers/contract.ts'
import { Queue } from '../queue/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { Settings } from './config.ts'
import {
  WorkflowChanged,
  WorkflowImports,
  WorkflowRunChanged,
  WorkflowRuns,
  WorkflowStepEnded,
  WorkflowSteps,
} from './contract.ts'
import type { WorkflowDefinitions } from './definitions/service.ts'
import { definitionRoutes } from './definitions/routes.ts'
import type { WorkflowFiles } from './files/workflow-files.ts'
import { migrations } from './migrations.ts'
import { createRuns } from './runs/index.ts'
import { StepTypes } from './steps/registry.ts'
import { definitionTools } from './tools.ts'

const required = {
  agents: Agents,
  audit: Audit,
  chat: Chat,
  daemon: Daemon,
  queue: Queue,
  sessions: Sessions,
  toolCalls: ToolCalls,
  turns: Turns,
}
const optional = { approvals: Approvals, channels: ChannelMessages, inference: Inference }
type Context = PluginContext<Settings, typeof required, typeof optional>

export default definePlugin({
  name: 'workflows',
  version: '1.0.0',
  config: Settings,
  requires: required,
  optional,
  provides: { steps: WorkflowSteps, runs: WorkflowRuns, imports: WorkflowImports },
  hooks: [WorkflowChanged, WorkflowRunChanged, WorkflowStepEnded],
  migrations,
  pages: [
    {
      path: 'workflows',
      title: 'Workflows',
      group: 'Automation',
      file: 'pages/workflows.html',
      assets: ['run-graph.js', 'run-view.js', 'step-view.js', 'workflow-card.js', 'workflows.css', 'workflows.js'],
    },
  ],
  setup(ctx) {
    const { config, db, hooks, log, routes, services, tools } = ctx
    const steps = new StepTypes()
    let opened: Promise<WorkflowDefinitions> | undefined
    const definitions = (): Promise<WorkflowDefinitions> =>
      (opened ??= import('./definitions/service.ts').then(({ openDefinitions }) =>
        openDefinitions({ ...services, config, db, hooks, log, steps, home: homeId(services.daemon.config()) }),
      ))
    const files = followFiles(ctx, definitions)
    const rehearsal = () => ({
      ...services,
      inference: ctx.optional('inference'),
      approvals: ctx.optional('approvals'),
      steps,
      tools: tools.list(),
    })
    routes.add(...definitionRoutes(definitions, () => files()?.states ?? [], rehearsal))
    tools.add(...definitionTools(definitions))
    const imports: WorkflowImports = {
      async add(id, definition, { isCheck = false, agents = new Map() } = {}) {
        const { importWorkflow } = await import('./import/import.ts')
        return await importWorkflow(await definitions(), definition, id, { isCheck, agents })
      },
    }
    return { steps, runs: createRuns(ctx, { definitions, stepTypes: steps }), imports }
  },
})

/** The workflows of the folder; `undefined` until all plugins are there, as a step may be of any. */
function followFiles(
  { config, hooks, leaving, log, own, run, services: { daemon } }: Context,
  definitions: () => Promise<WorkflowDefinitions>,
): () => WorkflowFiles | undefined {
  let files: WorkflowFiles | undefined
  const background = (work: () => Promise<void>): void => {
    run(work).catch((error: unknown) => log.error('cannot read the folder of workflows', error))
  }
  own('files', () => files?.[Symbol.dispose]())
  background(async () => {
    await pluginsLoaded(daemon, 'workflows', leaving)
    if (leaving.aborted) return
    const { WorkflowFiles } = await import('./files/workflow-files.ts')
    files = new WorkflowFiles({
      home: daemon.config().homeDir,
      maxFileBytes: config.max_file_bytes,
      totalTimeoutSecs: config.total_timeout_secs,
      definitions: await definitions(),
      log,
    })
    await files.start()
  })
  // A file may name an agent that is made after it.
  hooks.on(AgentSpawned, () => {
    if (files?.states.some(({ problem }) => problem !== undefined)) background(() => files?.sync() ?? Promise.resolve())
  })
  return () => files
}
