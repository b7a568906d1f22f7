import { Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AgentChanged, AgentKilled, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { BrowserAsked } from '../hands/contract.ts'
import { Settings } from './config.ts'
import { BrowserChanged } from './contract.ts'
import { browserRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { browserTools } from './tools.ts'

export default definePlugin({
  name: 'browser',
  version: '1.0.0',
  config: Settings,
  requires: { agents: Agents, audit: Audit, daemon: Daemon, workspaces: Workspaces },
  hooks: [BrowserChanged],
  setup(ctx) {
    const { config, hooks, metrics, own, routes, services, signal, spawn, tools } = ctx
    const counters = {
      steps: metrics.counter('svc_browser_steps_total', 'Steps of agents in web pages, by kind and outcome.'),
      opened: metrics.counter('svc_browsers_opened_total', 'Browsers that were opened for agents.'),
    }
    let opened: Promise<Runtime> | undefined
    let size = () => 0
    const open = async (): Promise<Runtime> => {
      const { Runtime } = await import('./runtime.ts')
      const runtime = new Runtime(ctx, counters)
      size = () => runtime.browsers.size
      return runtime
    }
    const runtime = (): Promise<Runtime> => (opened ??= open())
    metrics.observed('svc_browsers', 'Browsers that agents have open.', () => [{ value: size() }])
    own('browsers', async () => (await opened)?.browsers.closeAll('its plugin is unloaded'))
    tools.add(...browserTools(async () => (await runtime()).calls, config.timeout_secs))
    routes.add(...browserRoutes({ ...services, settings: config, spawn, opened: () => opened }))
    hooks.on(AgentChanged, async ({ agent }) => (await opened)?.browsers.recheck(agent.id))
    hooks.on(AgentKilled, async ({ agent }) => {
      const browsers = (await opened)?.browsers
      await browsers?.close(agent.id, 'the agent was removed')
      browsers?.forget(agent.id)
    })
    hooks.on(BrowserAsked, async (asked) =>
      asked.state || !opened ? asked : { ...asked, state: await (await opened).calls.state(asked.agentId, signal) },
    )
    return {}
  },
})
