import type { Clock } from 'svc/internal'
import { messageOf, nextHop } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Job, JobOutcome, Queue } from '../../queue/contract.ts'
import { hopLimit } from '../hops.ts'
import type { ClientSettings } from './config.ts'
import type { ExternalAgents } from './agents.ts'
import { a2aUnreachable } from './errors.ts'
import { isSettled, isWaiting } from './model.ts'
import type { ExternalAgent, SentTask } from './model.ts'
import type { SentStore } from './store.ts'
import type { Waiters } from './waiters.ts'
import type { RemoteAgent, RemoteTask } from './wire.ts'

const DAY_MS = 86_400_000
export const LANE = 'a2a-send'

export interface SentTasksDeps {
  readonly store: SentStore
  readonly audit: Pick<Audit, 'entry'>
  readonly queue: Pick<Queue, 'add' | 'admit' | 'cancel'>
  readonly agents: ExternalAgents
  readonly settings: ClientSettings
  readonly clock: Clock
  readonly waiters: Waiters
  readonly connect: (agent: ExternalAgent) => Promise<RemoteAgent>
  /** Aborts when the plugin unloads, which cuts its requests before the queue stops the job. */
  readonly unloading: AbortSignal
  readonly changed: (task: SentTask) => void
  readonly counted: (outcome: string) => void
}
export interface NewMessage {
  /** Also the id of the message: the same one again sends nothing twice. */
  readonly id: string
  readonly agent: ExternalAgent
  readonly text: string
  readonly contextId?: string | undefined
  /** The task of the other side that it is about. */
  readonly taskId?: string | undefined
  /** Daemons that what it is part of came through. */
  readonly hops?: number | undefined
  /** The agent here that sends it. */
  readonly askedBy?: string | undefined
}

/** Messages to agents elsewhere, and the tasks that they became there. */
export class SentTasks {
  readonly #deps: SentTasksDeps
  constructor(deps: SentTasksDeps) {
    this.#deps = deps
  }

  /** On disk when it settles; the queue sends it. */
  async send({ id, agent, text, contextId, taskId, askedBy, hops }: NewMessage): Promise<SentTask> {
    const { store, queue, audit, settings, clock } = this.#deps
    if (text.trim() === '') throw new Refusal('invalid_request', 'message: expected a text')
    if (text.length > settings.message_max_chars)
      throw new Refusal('invalid_request', `message: at most ${settings.message_max_chars} characters`)
    const known = await store.find(id)
    if (known) return known
    await queue.admit(askedBy)
    const now = clock.now()
    const task: SentTask = {
      id,
      agent_id: agent.id,
      agent_name: agent.name,
      url: agent.url,
      task_id: taskId ?? null,
      context_id: contextId ?? null,
      continues: taskId ?? null,
      state: 'submitted',
      message: text,
      result: null,
      error: null,
      asked_by: askedBy ?? null,
      hops: nextHop(hops, hopLimit(settings)),
      attempts: 0,
      created_at: now,
      updated_at: now,
      settled_at: null,
    }
    await store.commit([
      store.insert(task),
      queue.add({ lane: LANE, id, payload: {}, ...(askedBy !== undefined && { agentId: askedBy }) }),
      audit.entry({
        event: 'network_access',
        details: `A2A message ${id} to "${agent.name}" at ${agent.url}`,
        ...(askedBy !== undefined && { agentId: askedBy }),
      }),
    ])
    return task
  }

  /** The task when it has ended, waits for us, or `send_wait_secs` are over. */
  async wait(id: string, signal: AbortSignal): Promise<SentTask> {
    const { store, waiters, settings } = this.#deps
    const ended = waiters.next(id, settings.send_wait_secs * 1_000, signal)
    const now = await store.find(id)
    if (now && (isSettled(now.state) || isWaiting(now.state))) {
      ended.cancel()
      return now
    }
    await ended.promise
    return this.require(id, undefined)
  }

  find(id: string): Promise<SentTask | undefined> {
    return this.#deps.store.find(id)
  }
  /** Those that the other side calls so. */
  ofTask(taskId: string): Promise<readonly SentTask[]> {
    return this.#deps.store.ofTask(taskId)
  }
  async deleteOld(): Promise<void> {
    const { store, settings, clock } = this.#deps
    const before = clock.now() - settings.sent_retention_days * DAY_MS
    // Nobody follows a task any more whose end the other side never told.
    await store.commit([store.deleteOld(before, before - settings.follow_secs * 1_000)])
  }
  list(limit: number, offset: number): Promise<readonly SentTask[]> {
    return this.#deps.store.list(limit, offset)
  }
  count(): Promise<number> {
    return this.#deps.store.count()
  }
  /** By our id or by that of the other side. Several agents may choose the same: `url` says which one is meant. */
  async require(id: string, url: string | undefined): Promise<SentTask> {
    const { store, agents } = this.#deps
    const own = await store.find(id)
    if (own) return own
    const all = await store.ofTask(id)
    const agent = url === undefined ? undefined : await agents.find(url)
    const found = url === undefined ? all : all.filter((each) => each.agent_id === agent?.id || each.url === url)
    const names = new Set(found.map((each) => each.agent_id))
    if (names.size > 1)
      throw new Refusal('conflict', `${names.size} agents have a task "${id}": name one with ?url=, or use our own id.`)
    if (found[0]) return found[0]
    throw new Refusal('a2a_task_not_found', 'There is no such task: GET /api/a2a/tasks lists those that are known.')
  }

  /** What is known of it; asks the other side about one that has not ended. Throws 502 when that cannot be asked. */
  async status(id: string, url: string | undefined, signal: AbortSignal): Promise<SentTask> {
    const task = await this.require(id, url)
    if (isSettled(task.state) || task.task_id === null) return task
    const agent = await this.#deps.agents.requireTrusted(task.agent_id)
    try {
      const remote = await (await this.#deps.connect(agent)).get(task.task_id, signal)
      return await this.#record(task, remote)
    } catch (error) {
      throw unreachable(error)
    }
  }

  async cancel(id: string, url: string | undefined, signal: AbortSignal): Promise<SentTask> {
    const { queue, agents, connect } = this.#deps
    const task = await this.require(id, url)
    if (isSettled(task.state)) throw new Refusal('conflict', `The task has ended: it is ${task.state}.`)
    if (task.task_id === null) {
      await queue.cancel(LANE, task.id)
      return this.#settle(task, 'cancelled', 'cancelled before the other side answered')
    }
    const agent = await agents.requireTrusted(task.agent_id)
    try {
      return await this.#record(task, await (await connect(agent)).cancel(task.task_id, signal))
    } catch (error) {
      throw unreachable(error)
    }
  }

  /** Sends a message, or asks about its task. */
  async run(job: Pick<Job, 'id' | 'signal'>): Promise<JobOutcome> {
    const { store, agents, connect, unloading, settings } = this.#deps
    const task = await store.find(job.id)
    if (!task || isSettled(task.state) || isWaiting(task.state)) return { outcome: 'done' }
    try {
      const agent = await agents.requireTrusted(task.agent_id)
      const remote = await connect(agent)
      if (task.attempts > 0 && task.task_id !== null)
        return await this.#follow(task, await remote.get(task.task_id, job.signal))
      const message = {
        id: task.id,
        text: task.message,
        contextId: task.context_id ?? undefined,
        taskId: task.continues ?? undefined,
        hops: task.hops,
      }
      return await this.#follow(task, await remote.send(message, job.signal))
    } catch (error) {
      if (job.signal.aborted) throw error
      // Says nothing about the other side: the next worker goes on.
      if (unloading.aborted) return { outcome: 'postponed', afterMs: settings.poll_min_ms }
      return await this.#failed(task, error)
    }
  }
  /** The last failure: for the batch that ends the job. */
  async dead(id: string, reason: string): Promise<readonly Statement[]> {
    const task = await this.#deps.store.find(id)
    if (!task || isSettled(task.state)) return []
    const ended = this.#ended(task, 'failed', reason)
    return [{ ...this.#deps.store.update(ended), written: () => this.#tell(ended) }]
  }

  async #follow(task: SentTask, remote: RemoteTask): Promise<JobOutcome> {
    const { settings, clock } = this.#deps
    const next = await this.#record({ ...task, attempts: task.attempts + 1 }, remote)
    if (isSettled(next.state) || isWaiting(next.state)) return { outcome: 'done' }
    if (clock.now() - next.created_at > settings.follow_secs * 1_000) return { outcome: 'done' }
    const pause = settings.poll_min_ms * 1.5 ** Math.min(next.attempts - 1, 40)
    return { outcome: 'postponed', afterMs: Math.min(pause, settings.poll_max_ms) }
  }

  /** What cannot be mended by another attempt ends the task; all else is left to the queue. */
  async #failed(task: SentTask, error: unknown): Promise<JobOutcome> {
    const { store, clock, settings } = this.#deps
    const message = messageOf(error)
    const isTransient = error instanceof UpstreamFailure && error.retry === 'later' && !nothingWasSent(task, error)
    if (!isTransient && !isUnavailable(error)) {
      await this.#settle(task, 'failed', message)
      return { outcome: 'done' }
    }
    await store.commit([store.update({ ...task, error: message, updated_at: clock.now() })])
    if (error instanceof UpstreamFailure && error.retryAfterSecs !== undefined)
      throw new Refusal('service_unavailable', message, {
        // The other side may ask for any time; the rest of follow_secs is for its work.
        retryAfterSecs: Math.min(error.retryAfterSecs, settings.follow_secs / 2),
        cause: error,
      })
    throw error
  }

  async #record(task: SentTask, remote: RemoteTask): Promise<SentTask> {
    const { store, clock } = this.#deps
    const now = clock.now()
    const next: SentTask = {
      ...task,
      task_id: remote.taskId ?? task.task_id,
      context_id: remote.contextId ?? task.context_id,
      state: remote.state,
      result: remote.text === '' ? task.result : remote.text,
      error: null,
      updated_at: now,
      settled_at: isSettled(remote.state) ? now : null,
    }
    await store.commit([store.update(next)])
    if (next.state !== task.state || isSettled(next.state)) this.#tell(next)
    return next
  }
  #ended(task: SentTask, state: SentTask['state'], error: string): SentTask {
    const now = this.#deps.clock.now()
    return { ...task, state, error, updated_at: now, settled_at: now }
  }
  async #settle(task: SentTask, state: SentTask['state'], error: string): Promise<SentTask> {
    const ended = this.#ended(task, state, error)
    await this.#deps.store.commit([this.#deps.store.update(ended)])
    this.#tell(ended)
    return ended
  }
  #tell(task: SentTask): void {
    const { waiters, changed, counted } = this.#deps
    if (isSettled(task.state)) counted(task.state)
    if (isSettled(task.state) || isWaiting(task.state)) waiters.wake(task.id)
    changed(task)
  }
}

/** The connection was refused, so nothing arrived: whoever asked is told at once, and may ask again. */
function nothingWasSent({ attempts, error }: SentTask, { cause, reason }: UpstreamFailure): boolean {
  if (reason !== 'network' || attempts > 0 || error !== null) return false
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN'
}
const isUnavailable = (error: unknown): boolean => error instanceof Refusal && error.code === 'service_unavailable'
function unreachable(error: unknown): unknown {
  return error instanceof UpstreamFailure ? new Refusal(a2aUnreachable, error.message, { cause: error }) : error
}
