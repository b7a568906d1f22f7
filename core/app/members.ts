import type { ConsolaInstance } from 'consola'
import { checkedHooks } from '../host/declared-hooks.ts'
import type { AnyPlugin } from '../host/define.ts'
import type { Members } from '../host/instance.ts'
import { createJobs } from '../jobs/jobs.ts'
import type { JobTimer } from '../jobs/timer.ts'
import type { Fetch } from '../net/fetch.ts'
import { createSpawn } from '../process/spawn.ts'
import type { Scope } from '../scope/scope.ts'
import { scannedVault } from '../tools/secret-scanner.ts'
import type { Home } from './home.ts'
import type { Kernel } from './kernel.ts'

export interface MemberDeps {
  readonly kernel: Kernel
  readonly home: Home
  readonly log: ConsolaInstance
  /** Replaces outbound requests. */
  readonly fetch: Fetch | undefined
  /** Replaces the clock of jobs. */
  readonly jobTimer: ((plugin: string) => JobTimer) | undefined
  /** Definitions of every plugin whose code was read. */
  readonly known: () => readonly AnyPlugin[]
}

/** The members of one plugin's context, tied to its scope. */
export function createMembers(deps: MemberDeps, scope: Scope, definition: AnyPlugin): Members {
  const { kernel, home, log } = deps
  const { fetch, admit } = createNetwork(deps, scope, definition)
  const { programNetwork } = kernel
  return {
    routes: kernel.http.forPlugin(scope),
    credentials: kernel.http.credentials(scope),
    hooks: checkedHooks(kernel.hooks.forPlugin(scope), scope.name, deps.known, log),
    tools: kernel.tools.forPlugin(scope),
    storage: home.storage.forPlugin(scope.name),
    db: home.database.sql,
    vault: scannedVault(kernel.scanner, home.vault.forPlugin(scope.name)),
    jobs: createJobs(scope, kernel.defects.report, deps.jobTimer?.(scope.name)),
    metrics: kernel.metrics.forPlugin(scope),
    fetch,
    admit,
    spawn: createSpawn(scope, {
      folders: kernel.folders,
      ...(programNetwork && { openProxy: (admits) => programNetwork.open(admits) }),
    }),
  }
}

/** Outbound requests of one plugin; they end when it is unloaded. */
function createNetwork(
  { kernel: { outbound }, fetch: replacement }: MemberDeps,
  { signal }: Scope,
  definition: AnyPlugin,
): Pick<Members, 'fetch' | 'admit'> {
  const mayReachPrivate = definition.outbound === 'operator'
  const send = replacement ?? (mayReachPrivate ? outbound?.forOperator() : outbound?.fetch) ?? unreachable
  return {
    fetch: (url, request) => send(url, { ...request, owner: signal }),
    admit: async (url) => {
      await (mayReachPrivate ? outbound?.admitForOperator(url) : outbound?.admit(url))
    },
  }
}

const unreachable: Fetch = () => Promise.reject(new Error('this daemon has no network'))
