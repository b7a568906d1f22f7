import { join } from 'node:path'
import type { Daemon } from 'svc/internal'
import type { Counter, PluginContext } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import { Browsers } from './browsers.ts'
import { BrowserCalls } from './calls.ts'
import type { Settings } from './config.ts'
import { BrowserChanged } from './contract.ts'

export type RuntimeDeps = Pick<
  PluginContext<Settings, {}, {}>,
  'admit' | 'config' | 'hooks' | 'log' | 'run' | 'spawn'
> & {
  readonly services: {
    readonly agents: Agents
    readonly audit: Audit
    readonly daemon: Daemon
    readonly workspaces: Workspaces
  }
}
export interface Counters {
  readonly steps: Counter
  readonly opened: Counter
}

/** All that works with browsers, once an agent asks for one. */
export class Runtime {
  readonly browsers: Browsers
  readonly calls: BrowserCalls

  constructor({ admit, config: settings, hooks, log, run, services, spawn }: RuntimeDeps, counters: Counters) {
    this.browsers = new Browsers({
      ...services,
      settings,
      spawn,
      log,
      folder: join(services.daemon.config().dataDir, 'browsers'),
      changed(agentId, reason) {
        if (reason === null) counters.opened.add()
        const change = reason === null ? ('opened' as const) : ('closed' as const)
        run(() => hooks.emit(BrowserChanged, { change, agentId, reason })).catch((error: unknown) =>
          log.error('listeners were not told of a browser', error),
        )
      },
    })
    this.calls = new BrowserCalls({ ...services, browsers: this.browsers, settings, admit, steps: counters.steps })
  }
}
