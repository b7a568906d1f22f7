import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { readOwnJson, stableId, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Counter, Statement, Vault } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Job, JobOutcome, Queue } from '../../queue/contract.ts'
import type { WebhookSender } from '../../webhooks/contract.ts'
import { PUSH_LANE } from './lane.ts'
import { ProtocolProblem } from './problem.ts'
import type { PushRow, TaskStore } from './rows/store.ts'
import { isEnded } from './tasks.ts'
import type { Task, TaskService } from './tasks.ts'

export interface PushDeps {
  readonly store: TaskStore
  readonly tasks: () => TaskService
  readonly vault: Vault
  readonly queue: Pick<Queue, 'add'>
  readonly audit: Pick<Audit, 'entry'>
  readonly sender: () => WebhookSender | undefined
  readonly settings: {
    readonly max_push_configs: number
    readonly push_give_up_hours: number
    readonly push_secret?: string | undefined
  }
  readonly clock: Clock
  readonly deliveries: Counter
}
/** An address that is told when a task has ended. */
export interface NewPush {
  readonly id: string | undefined
  readonly url: string
  readonly token: string
  readonly authentication: { readonly scheme: string; readonly credentials: string } | undefined
  readonly version: PushRow['version']
}

const Secrets = v.object({ token: v.string(), credentials: v.string() })
const Payload = v.object({ taskId: v.string(), configId: v.string() })
const OWN_SECRET = 'push-signing-secret'
const HOUR_MS = 3_600_000
const MIN_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 300_000
const MAX_SECRET = 4_096
/** What a receiver answers that will not take the notification later either. */
const REFUSED: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 410, 413, 415, 422])
const SCHEME = /^[A-Za-z][A-Za-z0-9!#$&^_.+-]{0,63}$/
/** What a header can hold. */
const HEADER = /^[\x20-\x7e]*$/

/** Notifications of tasks that ended, to addresses that clients named. Token and credentials are in the vault. */
export class PushNotifications {
  readonly #deps: PushDeps
  readonly #queue = new SerialQueue()
  constructor(deps: PushDeps) {
    this.#deps = deps
  }

  /** Throws for an address that must not be called. Settles when it is durable. */
  async set(taskId: string, push: NewPush): Promise<PushRow> {
    const { tasks, audit, store } = this.#deps
    await this.check(push)
    return tasks().exclusive(taskId, async () => {
      const known = await store.pushes(taskId)
      const id = push.id ?? stableId('a2a-push', taskId, push.url)
      if (!known.some((one) => one.id === id)) this.#checkCount(known.length)
      const details = `task ${taskId}: ${originOf(push.url)} is to be notified of its end`
      const entry = audit.entry({ event: 'a2a_push_changed', details })
      const row = await store.find(taskId)
      const over = row && isEnded(row) ? [this.#job(taskId, id)] : []
      return this.#write(taskId, { ...push, id }, [entry, ...over])
    })
  }
  /** The same for a task that is about to be made. Its statements belong to the batch that makes it. */
  async prepare(taskId: string, push: NewPush): Promise<readonly Statement[]> {
    this.#checkCount(0)
    const row = this.#row(taskId, { ...push, id: push.id ?? stableId('a2a-push', taskId, push.url) })
    await this.#deps.vault.write(secretName(row.task_id, row.id), secretsOf(push))
    return [this.#deps.store.setPush(row)]
  }
  async check({ id, url, token, authentication }: NewPush): Promise<void> {
    const { sender } = this.#deps
    const webhooks = sender()
    if (!webhooks || this.#deps.settings.max_push_configs === 0)
      throw new ProtocolProblem('PushNotificationNotSupported', 'Push notifications are not supported here')
    if (id !== undefined && !/^[\w.:-]{1,128}$/.test(id)) throw malformed('id: at most 128 letters, digits and _ . : -')
    if (url.length > 2_048 || /\p{Cc}/u.test(url) || !/^https?:\/\//i.test(url) || !URL.canParse(url))
      throw malformed('url: must be an http or https address of at most 2048 characters')
    if (!HEADER.test(token) || token.length > MAX_SECRET) throw malformed('token: must fit in a header')
    if (authentication && !SCHEME.test(authentication.scheme))
      throw malformed('authentication.scheme: must be one word')
    const credentials = authentication?.credentials ?? ''
    if (!HEADER.test(credentials) || credentials.length > MAX_SECRET)
      throw malformed('authentication.credentials: must fit in a header')
    try {
      await webhooks.admit(url)
    } catch (error) {
      if (error instanceof Refusal) throw malformed(`url: ${error.message}`)
      throw error
    }
  }

  async find(taskId: string, id: string): Promise<PushRow> {
    const found = (await this.list(taskId)).find((one) => one.id === id)
    if (!found)
      throw new ProtocolProblem(
        'TaskNotFound',
        `Task ${taskId} has no push notification configuration "${id.slice(0, 128)}"`,
      )
    return found
  }
  list(taskId: string): Promise<readonly PushRow[]> {
    return this.#deps.store.pushes(taskId)
  }
  async remove(taskId: string, id: string): Promise<void> {
    const { store, vault, audit } = this.#deps
    const details = `task ${taskId}: an address is not notified any more`
    const statements = [store.removePush(taskId, id), audit.entry({ event: 'a2a_push_changed', details })]
    await vault.remove(secretName(taskId, id), statements)
  }
  /** Forgets the secrets of a task whose rows are deleted. */
  async forget(taskId: string): Promise<void> {
    for (const { id } of await this.list(taskId)) await this.#deps.vault.remove(secretName(taskId, id))
  }

  /** Forgets the secrets of tasks that went with their agent. */
  async forgetDeleted(): Promise<void> {
    const { vault, tasks } = this.#deps
    for (const name of await vault.names()) {
      const [, taskId, id] = SECRET_NAME.exec(name) ?? []
      if (taskId === undefined || id === undefined) continue
      // A secret is written just before its row.
      await tasks().exclusive(taskId, async () => {
        if (!(await this.list(taskId)).some((row) => row.id === id)) await vault.remove(name)
      })
    }
  }

  /** For the batch in which the task ends. */
  async jobs(taskId: string): Promise<readonly Statement[]> {
    return (await this.list(taskId)).map(({ id }) => this.#job(taskId, id))
  }
  /** One attempt to notify. */
  async deliver(job: Job): Promise<JobOutcome> {
    const { taskId, configId } = v.parse(Payload, job.payload)
    const { store, tasks, deliveries } = this.#deps
    const row = (await store.pushes(taskId)).find(({ id }) => id === configId)
    const task = row && (await tasks().find(taskId))
    if (!row || !task) return { outcome: 'done' }
    const sender = this.#deps.sender()
    if (!sender) return this.#later(job, 'the plugin "webhooks" is not loaded')
    const { status, error, retryAfterMs } = await sender.send(
      row.url,
      await this.#message(row, task, job.id),
      job.signal,
    )
    if (error === null) {
      deliveries.add(1, { outcome: 'delivered' })
      return { outcome: 'done' }
    }
    if (status === null || !REFUSED.has(status)) return this.#later(job, error, retryAfterMs)
    deliveries.add(1, { outcome: 'dead' })
    return { outcome: 'dead', reason: error }
  }

  async #message(row: PushRow, task: Task, id: string) {
    const { encodeNotification } = await import('./encode-notification.ts')
    const { token, credentials } = await this.#secrets(row)
    return {
      id,
      ...encodeNotification(task, row.version),
      secret: token === '' ? (this.#deps.settings.push_secret ?? (await this.#ownSecret())) : token,
      headers: {
        ...(token !== '' && { 'x-a2a-notification-token': token }),
        ...(row.scheme !== null && { authorization: `${row.scheme} ${credentials}`.trim() }),
      },
    }
  }
  /** Signs where neither the client nor the operator chose a secret: nothing goes out unsigned. */
  #ownSecret(): Promise<string> {
    const { vault } = this.#deps
    return this.#queue.run(async () => {
      const known = await vault.read(OWN_SECRET)
      if (known !== undefined) return known
      const made = `whsec_${randomBytes(32).toString('base64')}`
      await vault.write(OWN_SECRET, made)
      return made
    })
  }
  async #secrets({ task_id: taskId, id }: PushRow) {
    const secret = await this.#deps.vault.read(secretName(taskId, id))
    return secret === undefined ? { token: '', credentials: '' } : v.parse(Secrets, readOwnJson(secret))
  }
  #checkCount(count: number): void {
    const { max_push_configs: max } = this.#deps.settings
    if (count >= max) throw malformed(`at most ${max} addresses are notified of a task (a2a.max_push_configs)`)
  }
  async #write(taskId: string, push: NewPush & { readonly id: string }, statements: readonly Statement[]) {
    const row = this.#row(taskId, push)
    const { store, vault } = this.#deps
    await vault.write(secretName(taskId, push.id), secretsOf(push), [store.setPush(row), ...statements])
    return row
  }
  #row(taskId: string, { id, url, authentication, version }: NewPush & { readonly id: string }): PushRow {
    const createdAt = toIso(this.#deps.clock.now())
    return { task_id: taskId, id, url, scheme: authentication?.scheme ?? null, version, created_at: createdAt }
  }
  #job(taskId: string, configId: string): Statement {
    return this.#deps.queue.add({
      lane: PUSH_LANE,
      id: stableId('a2a-end', taskId, configId),
      payload: { taskId, configId },
    })
  }
  /** Waits as long again as it has waited already. */
  #later({ createdAt }: Job, reason: string, retryAfterMs = 0): JobOutcome {
    const { clock, settings, deliveries } = this.#deps
    const waitedMs = clock.now() - createdAt
    if (waitedMs > settings.push_give_up_hours * HOUR_MS) {
      deliveries.add(1, { outcome: 'dead' })
      return { outcome: 'dead', reason: `${reason}; given up after ${settings.push_give_up_hours} hours` }
    }
    deliveries.add(1, { outcome: 'retried' })
    const pauseMs = Math.min(Math.max(waitedMs, MIN_PAUSE_MS), MAX_PAUSE_MS)
    // The receiver may ask for any time, and is given up after this one.
    const askedMs = Math.min(retryAfterMs, settings.push_give_up_hours * HOUR_MS)
    return { outcome: 'postponed', afterMs: Math.max(askedMs, pauseMs) }
  }
}

function malformed(message: string): ProtocolProblem {
  return new ProtocolProblem('RequestMalformed', `push notification configuration: ${message}`)
}
const SECRET_NAME = /^push\/([^/]+)\/([^/]+)$/
function secretName(taskId: string, id: string): string {
  return `push/${taskId}/${id}`
}
function secretsOf({ token, authentication }: NewPush): string {
  return JSON.stringify({ token, credentials: authentication?.credentials ?? '' })
}
/** Path and query may hold a token. */
function originOf(url: string): string {
  return URL.parse(url)?.origin ?? 'an unknown address'
}
