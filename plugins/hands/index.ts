import { Broadcast, Daemon, DatabaseSnapshots, followChanges } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AgentKilling, Agents, AgentSpawning, AgentVariables, Family } from '../agents/contract.ts'
import { Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { SlashCommands, SystemPromptBuilt } from '../chat/contract.ts'
import { KeyValue } from '../kv/contract.ts'
import { McpServers } from '../mcp/contract.ts'
import { Inference } from '../providers/contract.ts'
import { SlotEnded, Wakeups } from '../schedules/contract.ts'
import { Skills } from '../skills/contract.ts'
import { Settings } from './config.ts'
import { BrowserAsked, HandChanged } from './contract.ts'
import { migrations } from './migrations.ts'
import { handRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { handTools } from './tools.ts'

export default definePlugin({
  name: 'hands',
  version: '1.0.0',
  config: Settings,
  requires: {
    agents: Agents,
    audit: Audit,
    broadcast: Broadcast,
    commands: SlashCommands,
    daemon: Daemon,
    family: Family,
    kv: KeyValue,
    snapshots: DatabaseSnapshots,
    variables: AgentVariables,
    wakeups: Wakeups,
  },
  optional: { approvals: Approvals, inference: Inference, mcp: McpServers, skills: Skills },
  hooks: [BrowserAsked, HandChanged],
  migrations,
  pages: [
    { path: 'hands', title: 'Hands', group: 'Agents', file: 'pages/hands.html', assets: ['hands.css', 'hands.js'] },
  ],
  setup(ctx) {
    const { hooks, log, metrics, own, routes, run, services, tools } = ctx
    const counters = {
      changes: metrics.counter('svc_hand_changes_total', 'Changes of instances of hands, by kind.'),
      runs: metrics.counter('svc_hand_runs_total', 'Scheduled runs of hands, by hand and outcome.'),
    }
    let followed: Promise<void> | undefined
    const tell = followChanges({ broadcast: services.broadcast, own }, 'hands.installed', () => {
      if (followed) void follow()
    })
    const open = async (): Promise<Runtime> => new (await import('./runtime.ts')).Runtime(ctx, counters, tell)
    let opened: Promise<Runtime> | undefined
    const runtime = (): Promise<Runtime> => (opened ??= open())
    const follow = (): Promise<void> => {
      const done = run(async () => (await runtime()).follow())
      return (followed = done.catch((error: unknown) => {
        // The next request tries again.
        followed = undefined
        log.error('installed hands are not as in the database', error)
      }))
    }
    /** With what other daemons installed. */
    const current = async (): Promise<Runtime> => {
      await (followed ?? follow())
      return await runtime()
    }
    routes.add(...handRoutes(current))
    tools.add(...handTools(current))
    const dispose = services.commands.add({
      name: 'hands',
      takes: '[hand]',
      description: 'the hands and how they do',
      effectOf: () => 'read',
      run: async ({ argument }) => (await current()).views.text(argument),
    })
    own('command', dispose)
    const variables = services.variables.add(async (agentId) => {
      const agent = await services.agents.find(agentId)
      return agent?.manifest.metadata['hand'] === undefined ? {} : (await runtime()).variables(agentId)
    })
    own('variables', () => variables[Symbol.dispose]())
    hooks.on(AgentSpawning, async (spawning) =>
      spawning.agent.manifest.metadata['hand'] === undefined ? spawning : (await runtime()).instances.addTo(spawning),
    )
    hooks.on(AgentKilling, async (killing) => (await runtime()).instances.endWith(killing))
    // What the operator set holds at once, and the agent's own text stays what it was.
    hooks.on(SystemPromptBuilt, (built) =>
      built.agent.manifest.metadata['hand'] === undefined ? built : runtime().then((open) => open.addSettings(built)),
    )
    hooks.on(SlotEnded, async (slot) => (await runtime()).instances.ran(slot))
    return {}
  },
})
