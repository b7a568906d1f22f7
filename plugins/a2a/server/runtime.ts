import { wallClock } from 'svc/internal'
import type { EventStream, Principal, Reply } from 'svc/sdk'
import { Refusal } from 'svc/sdk'
import type { Counter } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { A2aContext } from '../context.ts'
import type { A2aTask } from '../contract.ts'
import { hopLimit } from '../hops.ts'
import { Cards } from './cards.ts'
import { PushNotifications } from './push.ts'
import { TaskStore } from './rows/store.ts'
import { TaskService } from './tasks.ts'
import type { TaskScope } from './tasks.ts'

export interface RuntimeDeps {
  readonly ctx: A2aContext
  readonly changed: (task: A2aTask) => Promise<void>
  readonly deliveries: Counter
  readonly needsKey: () => boolean
}
/** What a route knows of a request of JSON-RPC. */
export interface RpcInput {
  readonly body: Uint8Array
  /** The header `Content-Type`. */
  readonly type: string | undefined
  /** The agent in the path; `undefined` for the service. */
  readonly name: string | undefined
  readonly base: string
  readonly version: string | undefined
  readonly principal: Principal
  readonly signal: AbortSignal
}

const DAY_MS = 86_400_000
const BATCH = 200

const KEY_HOLDER = ''
/** Of all streams, what a paired device or a sign-in may have. */
const SHARE = 4

/** Everything that answers requests, made with the first one. */
export class Runtime {
  readonly tasks: TaskService
  readonly push: PushNotifications
  readonly cards: Cards
  readonly #ctx: A2aContext
  readonly #store: TaskStore
  /** Open ones, by caller. */
  readonly #streams = new Map<string, number>()
  constructor({ ctx, changed, deliveries, needsKey }: RuntimeDeps) {
    const { config, db, services, tools, vault } = ctx
    const settings = config.a2a
    this.#ctx = ctx
    this.#store = new TaskStore(db, ctx.log)
    const sender = () => ctx.optional('webhooks')
    const shared = { ...services, store: this.#store, clock: wallClock }
    this.tasks = new TaskService({
      ...shared,
      maxParts: settings.max_parts,
      hopLimit: hopLimit(settings),
      ending: (taskId) => this.push.jobs(taskId),
      changed,
    })
    this.push = new PushNotifications({ ...shared, tasks: () => this.tasks, vault, sender, settings, deliveries })
    this.cards = new Cards({
      agents: services.agents,
      tools: () => tools.list(),
      pushes: () => sender() !== undefined && settings.max_push_configs > 0,
      needsKey,
      settings,
    })
  }
  /** Streams that are open. */
  get streams(): number {
    return [...this.#streams.values()].reduce((sum, count) => sum + count, 0)
  }

  /** The agent of a message: the named one, else the one that answers for the service. */
  agent(name: string | undefined): Promise<Agent> {
    const { agents } = this.#ctx.services
    return name === undefined ? agents.forCaller(this.#ctx.config.a2a.agent) : agents.resolve(name)
  }

  async rpc({ body, type, name, base, version, principal, signal }: RpcInput): Promise<Reply | EventStream> {
    // A path that names no agent is answered as any other unknown path.
    const named = name === undefined ? undefined : await this.agent(name)
    const { answerRpc } = await import('./json-rpc.ts')
    const { RequestHandler } = await import('./handler.ts')
    const { translate } = await import('./translate.ts')
    const { toAgentCard } = await import('./wire-card.ts')
    const translated = (error: unknown): Error =>
      translate(error, (defect) => {
        if (!signal.aborted) this.#ctx.log.error('a request over A2A failed', defect)
      })
    const { tasks, push, cards } = this
    const deps = {
      tasks,
      push,
      card: async (extended: boolean) => toAgentCard(await cards.describe(base, named?.name, extended)),
      now: () => new Date().toISOString(),
      translate: translated,
    }
    const caller = {
      agent: async () => named ?? (await this.agent(undefined)),
      scope: { agentId: named?.id, owner: ownerOf(principal) },
      signal,
    }
    return answerRpc(body, {
      handler: (spoken) => new RequestHandler(deps, { ...caller, version: spoken }),
      version,
      type,
      openStream: () => this.#openStream(caller.scope.owner),
      translate: translated,
    })
  }

  /** Deletes what ended long ago. */
  async deleteOld(): Promise<void> {
    await this.push.forgetDeleted()
    const { task_days: days } = this.#ctx.config.a2a
    if (days === 0) return
    const before = new Date(Date.now() - days * DAY_MS).toISOString()
    for (;;) {
      const old = await this.#store.old(before, BATCH)
      for (const { id } of old) {
        await this.push.forget(id)
        await this.#store.commit(this.#store.remove(id))
      }
      if (old.length < BATCH) return
    }
  }

  /** Whoever holds the key may have all; no other caller alone can keep the rest out. */
  #openStream(owner: string): () => void {
    const { max_streams: max } = this.#ctx.config.a2a
    const own = this.#streams.get(owner) ?? 0
    const share = owner === KEY_HOLDER ? max : Math.max(1, Math.floor(max / SHARE))
    if (own >= share || this.streams >= max) {
      const text = own >= share ? `You have ${own} streams open` : `${max} streams are open already`
      throw new Refusal('service_unavailable', `${text} (a2a.max_streams)`, { retryAfterSecs: 5 })
    }
    this.#streams.set(owner, own + 1)
    return () => {
      const left = (this.#streams.get(owner) ?? 1) - 1
      if (left > 0) this.#streams.set(owner, left)
      else this.#streams.delete(owner)
    }
  }
}

/** Whoever holds the key has all tasks; the holder of another credential has those that came with it. */
export function ownerOf(principal: Principal): string {
  return 'id' in principal ? `${principal.kind}:${principal.id}` : KEY_HOLDER
}
export function scopeOf(principal: Principal): TaskScope {
  return { agentId: undefined, owner: ownerOf(principal) }
}
