import { Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import { migrations as queueMigrations } from '../../../plugins/queue/migrations.ts'
import { Settings } from '../../../plugins/schedules/config.ts'
import { migrations } from '../../../plugins/schedules/migrations.ts'
import { createRuntime } from '../../../plugins/schedules/runtime.ts'
import { embeddedQueue } from '../../support/embedded-queue.ts'
import type { Database } from '../../../core/storage/database.ts'
import { parse } from '../../../core/schema/parse.ts'
import type { Json } from '../../support/json.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A clock that shows a real date, and can also be set. */
export class WallClock extends ManualClock {
  #offset: number
  constructor(iso: string) {
    super()
    this.#offset = Date.parse(iso) - super.now()
  }
  override now(): number {
    return super.now() + this.#offset
  }
  /** Changes what it shows; timers go on as if nothing had happened, as those of a machine do. */
  set(iso: string | number): void {
    this.#offset += (typeof iso === 'number' ? iso : Date.parse(iso)) - this.now()
  }
}

export interface Agent {
  readonly id: string
  readonly name: string
  state: string
}
/** What all daemons on a database share. */
export class World {
  readonly database: Database
  readonly clock: WallClock
  readonly agent: Agent = { id: 'agent-1', name: 'scout', state: 'Running' }
  /** Turns by id: how often each was begun, and its answer. */
  readonly turns = new Map<string, { readonly text: string; state: string; stop?: () => void }>()
  readonly begun: string[] = []
  /** The labels of each turn that was begun. */
  readonly labels: (readonly string[] | undefined)[] = []
  /** How often a turn was begun or followed. */
  asked = 0
  /** Turns that are followed do not end either. */
  isStuck = false
  readonly delivered: Json[] = []
  /** What the next turns end with; an error makes one fail. */
  answer: (text: string) => Promise<string> = (text) => Promise.resolve(`done: ${text}`)
  /** What listens to hooks. */
  listen: (event: Json) => Promise<void> = () => Promise.resolve()
  /** The plugin of workflows. */
  workflows: Json
  /** Refuses turns before they are written. */
  refuse: Error | undefined
  constructor(database: Database, clock: WallClock) {
    this.database = database
    this.clock = clock
  }
  async prepare(): Promise<void> {
    await this.database.migrate('queue', queueMigrations)
    await this.database.migrate('schedules', migrations)
  }
}

const log = { debug() {}, info() {}, warn() {}, error() {} }
const nothing = (world: World): Statement => world.database.sql.sql`DELETE FROM schedules_slot WHERE job_id = 'none'`

/** One daemon of those on a database. */
export function startDaemon(world: World, settings: Record<string, unknown> = {}, queueSettings: object = {}) {
  const pending = new Set<Promise<unknown>>()
  const events: Json[] = []
  const outcomes: string[] = []
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
  const queue = embeddedQueue({
    db: world.database.sql,
    settings: queueSettings,
    clock,
    background,
    isDead: () => isDead,
  })
  const services: Json = {
    agents: {
      find: (id: string) => Promise.resolve(id === world.agent.id ? world.agent : undefined),
      requireRunning: () => Promise.resolve(world.agent),
      resolve: (name: string) =>
        [world.agent.id, world.agent.name].includes(name)
          ? Promise.resolve(world.agent)
          : Promise.reject(new Refusal('agent_not_found', `There is no agent "${name}"`)),
    },
    turns: {
      find: (id: string) => Promise.resolve(world.turns.get(id)),
      ensure(request: { readonly id: string; readonly text: string; readonly labels?: readonly string[] }) {
        world.asked++
        const known = world.turns.get(request.id)
        if (known && world.isStuck) return Promise.resolve({ result: () => new Promise(() => {}) })
        if (known) return Promise.resolve({ result: () => Promise.resolve({ text: known.text, stop: 'done' }) })
        if (world.refuse) return Promise.reject(world.refuse)
        const cancelled = Promise.withResolvers<{ text: string; stop: string }>()
        const stop = (): void => cancelled.resolve({ text: 'so far', stop: 'cancelled' })
        const turn = { text: `done: ${request.text}`, state: 'running', stop }
        world.turns.set(request.id, turn)
        world.begun.push(request.text)
        world.labels.push(request.labels)
        const answer = world.answer(request.text).then(
          (text) => {
            turn.state = 'done'
            return { text, stop: 'done' }
          },
          (error: unknown) => {
            turn.state = 'failed'
            throw error
          },
        )
        const result = Promise.race([answer, cancelled.promise])
        result.catch(() => {})
        return Promise.resolve({ result: () => result })
      },
    },
    chat: {
      cancel: (id: string) => {
        const turn = world.turns.get(id)
        if (turn?.state !== 'running') return
        turn.state = 'cancelled'
        turn.stop?.()
      },
    },
    workflows: () => world.workflows,
    tasks: () => undefined,
    audit: { entry: () => nothing(world) },
    delivery: {
      check: () => Promise.resolve(),
      deliver: (target: Json, result: Json) => [
        { ...nothing(world), written: () => void world.delivered.push({ target, ...result }) },
      ],
    },
  }
  const runtime = createRuntime({
    ...services,
    db: world.database.sql,
    config: { ...parse(Settings, settings), max_cron_jobs: 500 },
    hooks: {
      emit(_: unknown, event: Json) {
        events.push(event)
        return world.listen(event)
      },
    },
    log,
    queue,
    inference: () => undefined,
    background,
    counted: (outcome: string, count: number) => void outcomes.push(...Array.from({ length: count }, () => outcome)),
    disabled: () => outcomes.push('disabled'),
    tell: () => [],
    clock,
  })
  queue.work('schedule', {
    run: (job) => runtime.runner.run(job),
    dead: (job, reason) => runtime.runner.dead(job, reason),
  })
  /** Settles when nothing is going on. */
  const idle = async (): Promise<void> => {
    while (pending.size > 0) await Promise.all(pending)
  }
  return {
    ...runtime,
    queue,
    events,
    outcomes,
    idle,
    begin() {
      queue.begin(false)
      runtime.scheduler.wake()
    },
    /** Forgets it as a killed process would be. */
    crash: () => void (isDead = true),
    async add(body: Json) {
      const job = { agent_id: 'scout', prompt: 'Report', schedule: '*/10 * * * *', ...body }
      const made = await runtime.schedules.create(job, undefined)
      await idle()
      return made
    },
    slots: async (id: string) =>
      (await runtime.schedules.history('schedule_not_found', id, undefined, 1000)).toReversed(),
    job: (id: string) => runtime.schedules.require('schedule_not_found', id),
    async stop() {
      await Promise.all([runtime.scheduler.stop(), queue.close()])
      await idle()
    },
  }
}
export type TestDaemon = ReturnType<typeof startDaemon>
