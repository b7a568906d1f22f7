import type { PluginDatabase, Statement } from 'svc/sdk'
import { createRuntime } from '../../../plugins/triggers/runtime.ts'
import { Settings } from '../../../plugins/triggers/config.ts'
import { migrations } from '../../../plugins/triggers/migrations.ts'
import { migrations as queueMigrations } from '../../../plugins/queue/migrations.ts'
import { embeddedQueue } from '../../support/embedded-queue.ts'
import type { Database } from '../../../core/storage/database.ts'
import { parse } from '../../../core/schema/parse.ts'
import type { Json } from '../../support/json.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** What all daemons on a database share. */
export class World {
  readonly database: Database
  readonly clock = new ManualClock()
  readonly agents: Json[] = []
  /** The audit trail; an entry is there, or it did not happen. */
  readonly trail: Json[] = []
  /** Turns by id, and the texts of those that were begun. */
  readonly turns = new Map<string, { readonly text: string; state: string }>()
  readonly begun: string[] = []
  /** The labels of each of these. */
  readonly labels: (readonly string[] | undefined)[] = []
  /** The plugin of workflows. */
  workflows: Json
  constructor(database: Database) {
    this.database = database
  }
  async prepare(): Promise<void> {
    await this.database.migrate('queue', queueMigrations)
    await this.database.migrate('triggers', migrations)
  }
  append(event: string, agentId: string, details: string, actor = ''): number {
    const id = this.trail.length + 1
    this.trail.push({ id, timestamp: new Date(this.clock.now()).toISOString(), event, agentId, details, actor })
    return id
  }
}

const log = { debug() {}, info() {}, warn() {}, error() {} }

/** One daemon of those on a database. */
export function startDaemon(world: World, settings: Json) {
  const pending = new Set<Promise<unknown>>()
  let isDead = false
  let writes = Infinity
  const background = (work: () => Promise<void>): void => {
    if (isDead) return
    const running = work().catch(() => {})
    pending.add(running)
    void running.finally(() => pending.delete(running))
  }
  // A killed process writes nothing more.
  const db = {
    ...boundTo(world.database.sql),
    batch(statements: readonly Statement[]) {
      isDead ||= writes-- <= 0
      return isDead ? Promise.reject(new Error('killed')) : world.database.sql.batch(statements)
    },
  }
  const queue = embeddedQueue({ db, clock: world.clock, background })
  const runtime = createRuntime({
    ...servicesOf(world),
    db,
    config: parse(Settings, settings),
    log,
    queue,
    background,
    clock: world.clock,
  })
  queue.work('trigger', {
    run: (job) => runtime.runner.run(job),
    dead: (job, reason) => runtime.runner.dead(job, reason),
  })
  return {
    ...runtime,
    begin() {
      queue.begin(false)
      runtime.dispatcher.wake()
    },
    wake: () => runtime.dispatcher.wake(),
    renew: () => queue.renew(),
    /** Settles when nothing is going on. */
    async idle() {
      while (pending.size > 0) await Promise.all(pending)
    },
    /** Forgets it as a killed process would be. */
    crash: () => void (isDead = true),
    /** Has it killed after so many more writes. */
    crashAfter: (more: number) => void (writes = more),
    async stop() {
      await Promise.all([runtime.dispatcher.stop(), queue.close()])
    },
  }
}
export type TestDaemon = ReturnType<typeof startDaemon>

function boundTo(sql: PluginDatabase): PluginDatabase {
  return {
    dialect: sql.dialect,
    sql: sql.sql.bind(sql),
    all: sql.all.bind(sql),
    one: sql.one.bind(sql),
    run: sql.run.bind(sql),
    batch: sql.batch.bind(sql),
  }
}

function servicesOf(world: World): Json {
  const nothing = () => world.database.sql.sql`DELETE FROM triggers_firing WHERE id = 'none'`
  return {
    agents: {
      find: (id: string) => Promise.resolve(world.agents.find((agent) => agent.id === id)),
      resolve: (name: string) => Promise.resolve(world.agents.find((agent) => agent.name === name)),
    },
    turns: {
      find: (id: string) => Promise.resolve(world.turns.get(id)),
      ensure({
        id,
        text,
        labels,
      }: {
        readonly id: string
        readonly text: string
        readonly labels?: readonly string[]
      }) {
        if (!world.turns.has(id)) {
          world.turns.set(id, { text, state: 'done' })
          world.begun.push(text)
          world.labels.push(labels)
        }
        return Promise.resolve({ result: () => Promise.resolve({ text: 'done', stop: 'done' }) })
      },
    },
    feed: {
      following: (after: number, limit: number) => Promise.resolve(world.trail.slice(after, after + limit)),
      newest: () => Promise.resolve(world.trail.length),
    },
    audit: { entry: nothing },
    delivery: { check: () => Promise.resolve(), deliver: () => [] },
    hooks: { emit: () => Promise.resolve() },
    published: () => undefined,
    workflows: () => world.workflows,
    tasks: () => undefined,
    tell: () => [],
    counted: () => {},
  }
}
