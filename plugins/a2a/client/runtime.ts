import { wallClock } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Fetch, Hooks, Logger, PluginDatabase, Tools, Vault } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Queue } from '../../queue/contract.ts'
import type { Screening } from '../../screening/contract.ts'
import { A2aAgentChanged, A2aSentChanged } from '../contract.ts'
import { ExternalAgents } from './agents.ts'
import type { ClientSettings } from './config.ts'
import { Credentials } from './credentials.ts'
import { AgentStore, SentStore } from './store.ts'
import { SentTasks } from './tasks.ts'
import { Waiters } from './waiters.ts'

export interface RuntimeDeps {
  readonly db: PluginDatabase
  readonly settings: ClientSettings
  readonly vault: Vault
  readonly tools: Pick<Tools, 'protectSecret'>
  readonly hooks: Pick<Hooks, 'emit'>
  readonly log: Logger
  readonly fetch: Fetch
  /** For agents of the configuration file. */
  readonly operatorFetch: Fetch
  readonly audit: Pick<Audit, 'entry'>
  readonly queue: Pick<Queue, 'add' | 'admit' | 'cancel'>
  readonly screening: Screening
  readonly unloading: AbortSignal
  readonly background: (work: () => Promise<void>) => void
  readonly counted: (what: 'agents' | 'tasks', outcome: string) => void
  readonly clock?: Clock
}
export interface Runtime {
  readonly agents: ExternalAgents
  readonly tasks: SentTasks
  readonly credentials: Credentials
  readonly sent: SentStore
}
export type LazyRuntime = () => Promise<Runtime>

/** All that works on agents elsewhere, once somebody asks for it. */
export async function createRuntime({ db, clock = wallClock, ...deps }: RuntimeDeps): Promise<Runtime> {
  const { settings, hooks, log, background, counted } = deps
  const sent = new SentStore(db, log)
  const credentials = new Credentials(deps)
  const agents = new ExternalAgents({
    ...deps,
    store: new AgentStore(db, log),
    clock,
    changed({ id, name, state }, what) {
      counted('agents', what)
      log.info(`an agent elsewhere is ${what}`, { id, name, state })
      background(() => hooks.emit(A2aAgentChanged, { id, name, state, change: what }))
    },
  })
  const tasks = new SentTasks({
    ...deps,
    store: sent,
    agents,
    clock,
    waiters: new Waiters(clock),
    async connect(agent) {
      const { RemoteAgent } = await import('./wire.ts')
      return new RemoteAgent({
        fetch: agents.fetchFor(agent),
        card: agent.card,
        origins: new Set(agent.view?.endpoints.map(({ url }) => new URL(url).origin)),
        headers: await credentials.headers(agent, agents.credentialOf(agent)),
        settings,
      })
    },
    counted: (outcome) => counted('tasks', outcome),
    changed({ id, agent_id: agentId, task_id: taskId, state }) {
      log.info(`a task elsewhere is ${state}`, { id, agent: agentId })
      background(() => hooks.emit(A2aSentChanged, { id, agentId, taskId, state }))
    },
  })
  await agents.syncConfigured()
  return { agents, tasks, credentials, sent }
}
