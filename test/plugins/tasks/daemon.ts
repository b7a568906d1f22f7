import type { Statement } from 'svc/sdk'
import { migrations as queueMigrations } from '../../../plugins/queue/migrations.ts'
import { Limits } from '../../../plugins/tasks/config.ts'
import type { TaskEvent } from '../../../plugins/tasks/contract.ts'
import { migrations } from '../../../plugins/tasks/migrations.ts'
import { createRuntime } from '../../../plugins/tasks/runtime.ts'
import { embeddedQueue } from '../../support/embedded-queue.ts'
import type { Database } from '../../../core/storage/database.ts'
import { parse } from '../../../core/schema/parse.ts'
import type { Json } from '../../support/json.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }
export const TWO = '22222222-2222-4222-8222-222222222222'

/** What all daemons on a database share. */
export class World {
  readonly database: Database
  readonly clock = new ManualClock()
  readonly agents: Json[] = [{ id: TWO, name: 'two', state: 'Running' }]
  /** Turns by id, in the order in which they were begun. */
  readonly turns = new Map<string, Json>()
  /** How the next turns end. */
  answer: (text: string) => Promise<string> = (text) => Promise.resolve(`done: ${text}`)
  /** Refuses turns before they are written. */
  refuse: Error | undefined
  constructor(database: Database) {
    this.database = database
  }
  async prepare(): Promise<void> {
    await this.database.migrate('queue', queueMigrations)
    const trail = { id: 'trail', sql: 'CREATE TABLE tasks_trail (details TEXT)' }
    await this.database.migrate('tasks', [...migrations, trail])
  }
  /** Entries of what stands for the audit trail: each exists exactly when its change does. */
  async trail(): Promise<number> {
    return (await this.database.sql.all`SELECT * FROM tasks_trail`).length
  }
}

const turnsOf = (world: World): Json => ({
  find: (id: string) => Promise.resolve(world.turns.get(id)),
  ensure(request: Json) {
    const known = world.turns.get(request.id)
    if (known) return Promise.resolve(known)
    if (world.refuse) return Promise.reject(world.refuse)
    const turn: Json = { ...request, state: 'running', failure: null }
    world.turns.set(request.id, turn)
    const result = world.answer(request.text).then(
      (text) => {
        turn.state = 'done'
        return { text, stop: turn.cancelled ? 'cancelled' : 'done' }
      },
      (error: unknown) => {
        turn.state = 'failed'
        turn.failure = { retryable: true }
        throw error
      },
    )
    result.catch(() => {})
    turn.result = () => result
    return Promise.resolve(turn)
  },
})

/** One daemon of those on a database. */
export function startDaemon(world: World, limits: Record<string, unknown> = {}) {
  const pending = new Set<Promise<unknown>>()
  const events: string[] = []
  let isDead = false
  const clock = {
    now: () => world.clock.now(),
    after: (ms: number, run: () => void) => world.clock.after(ms, () => void (isDead || run())),
  }
  const background = (work: () => Promise<void>): void => {
    if (isDead) return
    const running = work().catch(() => {})
    pending.add(running)
    void running.finally(() => pending.delete(running))
  }
  const queue = embeddedQueue({ db: world.database.sql, settings: { max_losses: 2 }, clock, background })
  const entry = ({ details }: { details: string }): Statement =>
    world.database.sql.sql`INSERT INTO tasks_trail (details) VALUES (${details})`
  const services: Json = {
    agents: {
      find: (id: string) => Promise.resolve(world.agents.find((agent) => agent.id === id)),
      resolve: (given: string) => Promise.resolve(world.agents.find(({ id, name }) => given === id || given === name)),
    },
    audit: { entry, write: () => Promise.resolve() },
    chat: { cancel: (id: string) => Object.assign(world.turns.get(id) ?? {}, { cancelled: true }) },
    turns: turnsOf(world),
  }
  const runtime = createRuntime({
    ...services,
    db: world.database.sql,
    limits: parse(Limits, limits),
    queue,
    log,
    clock,
    notify: (name, { eventId }: TaskEvent) => events.push(`${name} ${eventId}`),
  })
  queue.work('task', {
    run: (job) => runtime.worker.run(job),
    dead: (job, reason) => runtime.worker.dead(job, reason),
  })
  return {
    ...runtime,
    queue,
    events,
    begin: () => queue.begin(false),
    /** Settles when nothing is going on but turns that do not end. */
    idle: async (): Promise<void> => {
      while (pending.size > 0) await Promise.all(pending)
    },
    /** Forgets it as a killed process would be. */
    crash: () => void (isDead = true),
  }
}
