import { Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AgentKilling, Agents, AgentSpawning, Family } from '../agents/contract.ts'
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
    commands: SlashCommands,
    daemon: Daemon,
    family: Family,
    kv: KeyValue,
    wakeups: Wakeups,
  },
  optional: { approvals: Approvals, inference: Inference, mcp: McpServers, skills: Skills },
  hooks: [BrowserAsked, HandChanged],
  migrations,
  pages: [{ path: 'hands', title: 'Hands', file: 'pages/hands.html', assets: ['hands.css', 'hands.js'] }],
  setup(ctx) {
    const { hooks, metrics, own, routes, services, tools } = ctx
    const counters = {
      changes: metrics.counter('svc_hand_changes_total', 'Changes of instances of hands, by kind.'),
      runs: metrics.counter('svc_hand_runs_total', 'Scheduled runs of hands, by hand and outcome.'),
    }
    const open = async (): Promise<Runtime> => new (await import('./runtime.ts')).Runtime(ctx, counters)
    let opened: Promise<Runtime> | undefined
    const runtime = (): Promise<Runtime> => (opened ??= open())
    routes.add(...handRoutes(runtime))
    tools.add(...handTools(runtime))
    const dispose = services.commands.add({
      name: 'hands',
      takes: '[hand]',
      description: 'the hands and how they do',
      effectOf: () => 'read',
      run: async ({ argument }) => (await runtime()).views.text(argument),
    })
    own('command', dispose)
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
