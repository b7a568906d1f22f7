import { stableId } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agent, Changing, Manifest, Spawning } from '../agents/contract.ts'
import type { JobBody } from './body.ts'
import type { Schedules } from './service.ts'

const NAME = 'schedule of the manifest'
const PERIODIC = 'Your schedule wakes you. Do what is due now by your instructions, and end with a short report.'
const CONTINUOUS =
  'You are woken at intervals. Look what there is to do by your instructions, do it, and end with a short report.'
/** The id of the schedule that the manifest of an agent makes. */
const idOf = (agentId: string): string => stableId('schedule-of-manifest', agentId)

interface Deps {
  readonly schedules: Schedules
  /** A schedule is due earlier than before. */
  readonly wake: () => void
  readonly background: (work: () => Promise<void>) => void
}
type Batch = readonly Statement[]

/** Makes `schedule` of a manifest a schedule, in the batch that makes or changes the agent. */
export class ManifestSchedules {
  readonly #deps: Deps
  constructor(deps: Deps) {
    this.#deps = deps
  }

  async addTo(spawning: Spawning): Promise<Spawning> {
    const { agent, statements, by, isResting } = spawning
    return { ...spawning, statements: [...statements, ...(await this.#insert(agent, by, isResting))] }
  }

  /** A schedule that says the same stays as it is, with what a person did to it. */
  async change(changing: Changing): Promise<Changing> {
    const { before, agent, statements, isWhole } = changing
    const isSame = JSON.stringify(before.manifest.schedule) === JSON.stringify(agent.manifest.schedule)
    if (isSame && !isWhole) return changing
    const job = await this.#deps.schedules.find(idOf(agent.id))
    if (isSame && job) return changing
    return { ...changing, statements: [...statements, ...(await this.#replace(agent, job))] }
  }

  async #replace(agent: Agent, job: Awaited<ReturnType<Schedules['find']>>): Promise<Batch> {
    const { schedules } = this.#deps
    const wanted = wantedBy(agent.manifest)
    if (job && wanted && job.endedAt === undefined)
      return this.#told(namingKey(wanted.key, () => schedules.rewriting(job, wanted.body)))
    const { statements = [], after } = job ? await schedules.removing(job) : {}
    const removed = statements.map((statement, at) =>
      at > 0 || !after ? statement : { ...statement, written: () => this.#deps.background(after) },
    )
    return [...removed, ...(await this.#insert(agent))]
  }

  async #insert(agent: Agent, by?: Spawning['by'], isResting = false): Promise<Batch> {
    const { schedules } = this.#deps
    const wanted = wantedBy(agent.manifest)
    if (!wanted) return []
    await schedules.checkRoom()
    const body = { ...wanted.body, name: NAME, enabled: !isResting }
    const { statements } = await namingKeyLater(wanted.key, () => schedules.prepare(body, idOf(agent.id), agent, by))
    return this.#told(statements)
  }
  /** The scheduler looks when the batch is on disk. */
  #told(statements: Batch): Batch {
    return statements.map((statement, at) =>
      at === 0 ? { ...statement, written: () => this.#deps.wake() } : statement,
    )
  }
}

/** `undefined`: nothing wakes it by the clock. `key` is what the time stands in. */
function wantedBy({ schedule }: Manifest): { readonly body: JobBody; readonly key: string } | undefined {
  if (schedule === 'reactive') return undefined
  const { periodic, continuous } = schedule
  if (periodic && continuous)
    throw refuse('schedule.continuous', 'there is schedule.periodic already; keep one of them')
  if (periodic) {
    const { cron, tz = 'UTC', prompt = PERIODIC } = periodic
    return { body: { schedule: { kind: 'cron', expr: cron, tz }, prompt }, key: 'schedule.periodic.cron' }
  }
  if (!continuous) return undefined
  const { check_interval_secs: secs, prompt = CONTINUOUS } = continuous
  return {
    body: { schedule: { kind: 'every', every_secs: secs }, prompt },
    key: 'schedule.continuous.check_interval_secs',
  }
}

/** A wrong time is one of the manifest. */
function namingKey<T>(key: string, use: () => T): T {
  try {
    return use()
  } catch (error) {
    throw named(key, error)
  }
}
const namingKeyLater = <T>(key: string, use: () => Promise<T>): Promise<T> =>
  use().catch((error: unknown) => {
    throw named(key, error)
  })
function named(time: string, error: unknown): unknown {
  if (!(error instanceof Refusal) || error.code !== 'invalid_request') return error
  const [, field = '', reason = error.message] = /^([a-z_.]+): (.*)$/s.exec(error.message) ?? []
  const path = field === 'tz' ? 'schedule.periodic.tz' : time
  return refuse(path, reason, error)
}
const refuse = (path: string, message: string, cause?: unknown): Refusal =>
  new Refusal('invalid_request', `${path}: ${message}`, { details: { issues: [{ path, message }] }, cause })
