import { wallClock } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Logger, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Chat, Turns } from '../chat/contract.ts'
import type { Queue } from '../queue/contract.ts'
import { TaskChanges } from './changes.ts'
import type { ChangesDeps } from './changes.ts'
import type { Limits } from './config.ts'
import { Expiry } from './expiry.ts'
import { TaskService } from './service.ts'
import { TaskStore } from './rows/store.ts'
import { TaskWorker } from './worker.ts'

export interface RuntimeDeps {
  readonly db: PluginDatabase
  readonly limits: Limits
  readonly agents: Agents
  readonly audit: Audit
  readonly chat: Pick<Chat, 'cancel'>
  readonly queue: Queue
  readonly turns: Turns
  readonly log: Logger
  readonly notify: ChangesDeps['notify']
  readonly clock?: Clock
}
export interface Runtime {
  readonly tasks: TaskService
  readonly expiry: Expiry
  readonly worker: TaskWorker
}
export type LazyRuntime = () => Promise<Runtime>

/** All that works on tasks, made by its first use. */
export function createRuntime({ db, clock = wallClock, ...deps }: RuntimeDeps): Runtime {
  const store = new TaskStore(db, deps.log)
  const changes = new TaskChanges({
    ...deps,
    store,
    clock,
    stopTurn: (turnId) => deps.chat.cancel(turnId),
  })
  const expiry = new Expiry({ ...deps, store, changes })
  const tasks = new TaskService({
    ...deps,
    store,
    changes,
    reopenExpired: () => expiry.reopenExpired(),
  })
  const worker = new TaskWorker({ ...deps, store, changes, tasks, clock })
  return { tasks, expiry, worker }
}
