import { v7 } from 'uuid'
import { toIso } from 'svc/internal'
import type { Clock, TellChange } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { ErrorCode, Statement } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { WorkflowRuns } from '../workflows/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { ResultDelivery } from '../result-delivery/contract.ts'
import type { JobBody } from './body.ts'
import type { Settings } from './config.ts'
import { nameFrom, readInput } from './input.ts'
import { textOf } from './job.ts'
import type { Action, Job, Slot } from './job.ts'
import type { JobFilter, JobStore } from './jobs/store.ts'
import { LANE } from './lane.ts'
import type { SlotStore } from './slots/store.ts'
import { nextSlot } from './timing/timing.ts'

export interface ServiceDeps {
  readonly jobs: JobStore
  readonly slots: SlotStore
  readonly agents: Agents
  readonly audit: Audit
  readonly queue: Pick<Queue, 'cancel'>
  readonly delivery: Pick<ResultDelivery, 'check'>
  readonly workflows: () => Pick<WorkflowRuns, 'resolve' | 'cancel'> | undefined
  readonly settings: Settings
  readonly clock: Clock
  /** A run by hand has nothing to wait for any more. */
  readonly gone: (runId: string) => void
  /** A job is due earlier than before. */
  readonly wake: () => void
  /** The same for the other daemons on the database. */
  readonly tell: TellChange
}
/** Who makes or changes a job. */
export interface Author {
  /** The agent, when one did it by a tool. */
  readonly agentId?: string
  /** The agents for which it does so, itself the last. */
  readonly onBehalf?: readonly string[]
  /** Where its words come from. */
  readonly labels?: readonly string[]
  /** Daemons that the request came through. */
  readonly hops?: number | undefined
}

/** Schedules and cron jobs, for routes, tools and pages. */
export class Schedules {
  readonly #deps: ServiceDeps
  /** A job does not change between its check and its update. */
  readonly #changes = new SerialQueue()
  constructor(deps: ServiceDeps) {
    this.#deps = deps
  }

  /**
   * Throws `invalid_request` that names the field, `agent_not_found`, `forbidden` for a receiver that the agent must
   * not reach, and `rate_limit` when there are too many.
   */
  async create(body: JobBody, id: string | undefined, author: Author = {}): Promise<Job> {
    const { jobs, wake, delivery } = this.#deps
    const input = readInput(body, this.#deps.clock.now())
    if (input.agent === undefined) throw missing('agent_id')
    const agent = await this.#deps.agents.resolve(input.agent)
    for (const target of input.targets ?? []) await delivery.check(target, author.agentId)
    const { job, statements } = await this.prepare(body, id ?? v7(), agent, author)
    try {
      await jobs.commit(statements)
    } catch (error) {
      await this.#checkLimits(agent, error)
      throw error
    }
    wake()
    return job
  }
  /** Throws `invalid_request` that names the field. */
  check(body: JobBody): void {
    readInput(body, this.#deps.clock.now())
  }
  /**
   * The same for a batch of the caller, who says `wake` after it. The agent need not be there yet. Throws
   * `invalid_request` that names the field.
   */
  async prepare(
    body: JobBody,
    id: string,
    agent: Pick<Agent, 'id' | 'name'>,
    author: Author = {},
  ): Promise<{ readonly job: Job; readonly statements: readonly Statement[] }> {
    const { jobs, audit, settings, clock } = this.#deps
    const now = clock.now()
    const input = readInput(body, now)
    if (input.timing === undefined) throw missing('cron')
    if (input.action === undefined) throw missing('prompt')
    const { timing, enabled = true } = input
    const action = await this.#checked(input.action, author)
    const job: Job = {
      id,
      name: input.name ?? nameFrom(action),
      agentId: agent.id,
      timing,
      action,
      targets: input.targets ?? [],
      missed: input.missed ?? (timing.kind === 'at' ? 'once' : 'skip'),
      sessionMode: input.sessionMode,
      oneShot: input.oneShot ?? timing.kind === 'at',
      enabled,
      version: 1,
      nextRun: enabled ? nextSlot(timing, now) : undefined,
      lastRun: undefined,
      lastStatus: undefined,
      failures: 0,
      runs: 0,
      reason: undefined,
      createdBy: author.agentId,
      onBehalf: author.onBehalf ?? [],
      labels: author.labels ?? [],
      hops: author.hops ?? 0,
      createdAt: now,
      updatedAt: now,
      endedAt: undefined,
    }
    const details = `schedule ${job.id} "${job.name}" for agent "${agent.name}" was made`
    const statements = [
      jobs.insert(job, settings),
      audit.entry({ event: 'schedule_changed', agentId: agent.id, details }),
      ...this.#deps.tell(job.id),
    ]
    return { job, statements }
  }
  /** Throws `rate_limit` when there are as many schedules as may be. */
  async checkRoom(): Promise<void> {
    const { jobs, settings } = this.#deps
    if ((await jobs.count({})) >= settings.max_cron_jobs)
      throw new Refusal(
        'rate_limit',
        `There are ${settings.max_cron_jobs} schedules, which is all max_cron_jobs allows`,
      )
  }

  /** Fields that are left out stay. Throws what `create` does, and `…_not_found`. */
  change(code: ErrorCode, id: string, body: JobBody, author: Author = {}): Promise<Job> {
    return this.#changes.run(async () => {
      const { clock, delivery } = this.#deps
      const job = await this.require(code, id)
      if (job.endedAt !== undefined)
        throw new Refusal('conflict', `This schedule has ended: ${job.reason ?? 'it is done'}; make a new one`)
      const now = clock.now()
      const { agent, timing = job.timing, action: changed, ...input } = readInput(body, now, job)
      const action = changed === undefined ? job.action : await this.#checked(changed, author)
      const agentId = agent === undefined ? job.agentId : (await this.#deps.agents.resolve(agent)).id
      for (const target of input.targets ?? []) await delivery.check(target, author.agentId)
      const enabled = input.enabled ?? job.enabled
      const isStarted = enabled && !job.enabled
      const isMoved = timing !== job.timing || isStarted
      const next: Job = {
        ...job,
        ...input,
        action,
        agentId,
        timing,
        enabled,
        nextRun: enabled ? (isMoved ? nextSlot(timing, now) : job.nextRun) : undefined,
        failures: isStarted ? 0 : job.failures,
        reason: enabled ? undefined : input.enabled === false ? 'disabled by hand' : job.reason,
        updatedAt: now,
      }
      await this.#commit(job, next)
      return this.require(code, id)
    })
  }
  /** For a batch of somebody else's, which fails when the job changed since it was read; `stopRuns` is called after it. */
  disabling(job: Job, reason: string): readonly Statement[] {
    const { clock } = this.#deps
    return this.#statements(job, { ...job, enabled: false, nextRun: undefined, reason, updatedAt: clock.now() })
  }
  /** Slots that wait or run. */
  async stopRuns(id: string, reason: string): Promise<void> {
    const { slots, queue } = this.#deps
    for (const kind of ['slot', 'manual'] as const)
      for (const { runId, workflowRunId } of (await slots.waiting(id, kind)).slots) {
        await queue.cancel(LANE, runId)
        this.#deps.gone(runId)
        if (workflowRunId !== undefined) await this.#deps.workflows()?.cancel(workflowRunId, reason)
      }
  }
  #statements(before: Job, after: Job): readonly Statement[] {
    const { jobs, audit } = this.#deps
    const details = `schedule ${after.id} "${after.name}" was changed`
    const change = { before: toRecord(before), after: toRecord(after) }
    return [
      jobs.update(after),
      audit.entry({ event: 'schedule_changed', agentId: after.agentId, details, change }),
      ...this.#deps.tell(after.id),
    ]
  }
  async #commit(before: Job, after: Job): Promise<void> {
    const { jobs, wake } = this.#deps
    try {
      await jobs.commit(this.#statements(before, after))
    } catch (cause) {
      const found = await jobs.find(before.id)
      if (found?.version === before.version) throw cause
      throw new Refusal('conflict', 'This schedule changed at the same moment; read it again and repeat the change', {
        cause,
      })
    }
    wake()
  }

  /** Its history goes with it; a slot that runs is stopped. */
  remove(code: ErrorCode, id: string): Promise<void> {
    return this.#changes.run(async () => {
      const { statements, after } = await this.removing(await this.require(code, id))
      await this.#deps.jobs.commit(statements)
      await after()
    })
  }
  /** The same for a batch of the caller, who calls `after` when it is on disk. */
  async removing({ id, name, agentId }: Job): Promise<{
    readonly statements: readonly Statement[]
    readonly after: () => Promise<void>
  }> {
    const { jobs, slots, audit, queue } = this.#deps
    const open = [...(await slots.waiting(id)).slots, ...(await slots.waiting(id, 'manual')).slots]
    const details = `schedule ${id} "${name}" was removed`
    return {
      statements: [...jobs.remove(id), audit.entry({ event: 'schedule_changed', agentId, details })],
      after: async () => {
        for (const { runId, workflowRunId } of open) {
          await queue.cancel(LANE, runId)
          this.#deps.gone(runId)
          if (workflowRunId !== undefined) await this.#deps.workflows()?.cancel(workflowRunId, details)
        }
      },
    }
  }
  /** What it says from now on, in a batch of the caller, who says `wake` after it. Throws `invalid_request`. */
  rewriting(job: Job, body: JobBody): readonly Statement[] {
    const { jobs, clock, audit } = this.#deps
    const now = clock.now()
    const { timing = job.timing, action = job.action } = readInput(body, now, job)
    const after: Job = { ...job, timing, action, nextRun: nextSlot(timing, now), updatedAt: now }
    const details = `schedule ${job.id} "${job.name}" was changed`
    const change = { before: toRecord(job), after: toRecord(after) }
    return [
      jobs.rewrite(after),
      audit.entry({ event: 'schedule_changed', agentId: job.agentId, details, change }),
      ...this.#deps.tell(job.id),
    ]
  }

  find(id: string): Promise<Job | undefined> {
    return this.#deps.jobs.find(id)
  }
  /** Throws `…_not_found`. */
  async require(code: ErrorCode, id: string): Promise<Job> {
    const job = await this.find(id)
    if (!job) throw new Refusal(code, `There is no ${code === 'cron_job_not_found' ? 'cron job' : 'schedule'} ${id}`)
    return job
  }
  async list(filter: JobFilter, limit: number, offset: number) {
    const { jobs } = this.#deps
    const [found, total] = await Promise.all([jobs.list(filter, limit, offset), jobs.count(filter)])
    return { jobs: found, total }
  }
  async history(code: ErrorCode, id: string, before: number | undefined, limit: number): Promise<readonly Slot[]> {
    await this.require(code, id)
    return this.#deps.slots.list(id, before, limit)
  }
  async deleteOld(): Promise<void> {
    const { jobs, slots, clock, settings } = this.#deps
    const before = clock.now() - settings.retention_days * 86_400_000
    await jobs.commit([...jobs.deleteEnded(before), slots.deleteOld(before)])
  }

  /** A workflow by its id. */
  async #checked(action: Action, { agentId }: Author): Promise<Action> {
    if (action.kind === 'agent_turn' && agentId !== undefined) await this.#checkModel(action.model_override, agentId)
    if (action.kind !== 'workflow') return action
    const workflows = this.#deps.workflows()
    if (!workflows) throw new Refusal('invalid_request', 'action.kind: the plugin "workflows" is not loaded')
    return { ...action, workflow_id: await workflows.resolve(action.workflow_id, agentId) }
  }
  /** Which models an agent uses is up to whoever made its manifest. */
  async #checkModel(name: string | undefined, agentId: string): Promise<void> {
    if (name === undefined) return
    const { model, fallback_models: others } = (await this.#deps.agents.require(agentId)).manifest
    const own = [model, ...others].flatMap((one) => [one.model, `${one.provider}/${one.model}`])
    if (own.includes(name)) return
    throw new Refusal(
      'forbidden',
      `action.model_override: an agent chooses among the models of its manifest, and "${name}" is none of them`,
    )
  }
  async #checkLimits({ id, name }: Agent, cause: unknown): Promise<void> {
    const { jobs, settings } = this.#deps
    const [all, own] = await Promise.all([jobs.count({}), jobs.count({ agentId: id })])
    const full = (max: number, whose: string, key: string) =>
      new Refusal('rate_limit', `${whose} ${max} schedules, which is all ${key} allows`, { cause })
    if (own >= settings.max_jobs_per_agent)
      throw full(settings.max_jobs_per_agent, `Agent "${name}" has`, 'plugins.schedules.max_jobs_per_agent')
    if (all >= settings.max_cron_jobs) throw full(settings.max_cron_jobs, 'There are', 'max_cron_jobs')
  }
}

const missing = (field: string): Refusal => new Refusal('invalid_request', `${field}: this field is required`)

function toRecord({ name, agentId, timing, action, targets, enabled, missed }: Job): Record<string, unknown> {
  const when = timing.kind === 'at' ? toIso(timing.at) : timing.kind === 'cron' ? `${timing.expr} ${timing.tz}` : timing
  return {
    name,
    agent_id: agentId,
    schedule: when,
    action: action.kind,
    prompt: textOf(action),
    delivery_targets: targets,
    enabled,
    missed,
  }
}
