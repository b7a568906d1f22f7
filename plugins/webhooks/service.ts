import { Refusal } from 'svc/sdk'
import type { Vault } from 'svc/sdk'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { DeliveryRow, Target } from './schema.ts'
import type { WebhookStore } from './store.ts'

export interface WebhookParts {
  readonly store: WebhookStore
  readonly audit: Audit
  readonly feed: AuditFeed
  readonly vault: Pick<Vault, 'read' | 'write' | 'remove'>
  readonly admit: (url: string) => Promise<void>
  readonly most: number
  readonly now: () => string
  /** Told after every change of who is subscribed. */
  readonly changed: () => void
}
export interface NewTarget {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly events: readonly string[]
  readonly secret: string | undefined
  readonly enabled: boolean
}
export interface TargetChange {
  readonly name?: string | undefined
  readonly url?: string | undefined
  readonly events?: readonly string[] | undefined
  readonly secret?: string | null | undefined
  readonly enabled?: boolean | undefined
}

/** Who is told of what. Secrets lie in the vault under the id of their target. */
export class Webhooks {
  readonly #parts: WebhookParts
  #last: Promise<unknown> = Promise.resolve()
  constructor(parts: WebhookParts) {
    this.#parts = parts
  }

  list(kind: Target['kind']): Promise<readonly Target[]> {
    return this.#parts.store.list(kind)
  }
  /** Throws `webhook_not_found`. */
  async require(kind: Target['kind'], id: string): Promise<Target> {
    const target = await this.#parts.store.find(id)
    if (target?.kind !== kind) throw new Refusal('webhook_not_found', `No webhook ${id}`)
    return target
  }

  /** Throws `invalid_request` for an address that must not be reached, `conflict` when there are too many. */
  async add(kind: Target['kind'], { id, name, url, events, secret, enabled }: NewTarget): Promise<Target> {
    await this.#checkUrl(url)
    return this.#inTurn(() => this.#insert(kind, { id, name, url, events, secret, enabled }))
  }
  async #insert(kind: Target['kind'], { id, name, url, events, secret, enabled }: NewTarget): Promise<Target> {
    const { store, audit, feed, vault, most, now, changed } = this.#parts
    if ((await store.list(kind)).length >= most)
      throw new Refusal(
        'conflict',
        `There are ${most} webhooks already, which is all plugins.webhooks.max_webhooks allows`,
      )
    const at = now()
    const target: Target = {
      id,
      kind,
      name,
      url,
      events: [...events],
      enabled,
      has_secret: secret !== undefined,
      position: await feed.newest(),
      created_at: at,
      updated_at: at,
    }
    const statements = [
      store.insert(target),
      audit.entry({ event: 'webhook_changed', details: `webhook ${id} "${name}" to ${originOf(url)} added` }),
    ]
    await (secret === undefined ? store.commit(statements) : vault.write(id, secret, statements))
    changed()
    return target
  }

  /** Throws `webhook_not_found` and as `add`. An empty secret, or `null`, takes it away. What happened while it was off is not told later. */
  async change(kind: Target['kind'], id: string, change: TargetChange): Promise<Target> {
    const { url } = await this.require(kind, id)
    if (change.url !== undefined && change.url !== url) await this.#checkUrl(change.url)
    return this.#inTurn(() => this.#update(kind, id, change))
  }
  async #update(kind: Target['kind'], id: string, change: TargetChange): Promise<Target> {
    const before = await this.require(kind, id)
    const { store, audit, feed, vault, now, changed } = this.#parts
    const secret = change.secret ?? (change.secret === null ? '' : undefined)
    const target: Target = {
      ...before,
      name: change.name ?? before.name,
      url: change.url ?? before.url,
      events: [...(change.events ?? before.events)],
      enabled: change.enabled ?? before.enabled,
      has_secret: secret === undefined ? before.has_secret : secret !== '',
      updated_at: now(),
      position: change.enabled === true && !before.enabled ? await feed.newest() : before.position,
    }
    const statements = [
      store.update(target),
      audit.entry({
        event: 'webhook_changed',
        details: `webhook ${id} "${target.name}" changed`,
        change: { before: factsOf(before), after: { ...factsOf(target), ...isNew(before, target, secret) } },
      }),
    ]
    if (secret === undefined) await store.commit(statements)
    else if (secret === '') await vault.remove(id, statements)
    else await vault.write(id, secret, statements)
    changed()
    return target
  }

  /** Throws `webhook_not_found`. What waits for it is dropped. */
  remove(kind: Target['kind'], id: string): Promise<void> {
    return this.#inTurn(async () => {
      const { store, audit, vault, changed } = this.#parts
      const target = await this.require(kind, id)
      await vault.remove(id, [
        ...store.remove(id),
        audit.entry({ event: 'webhook_changed', details: `webhook ${id} "${target.name}" removed` }),
      ])
      changed()
    })
  }
  /** One change at a time: each builds on what the one before left. Addresses are looked up before, which may take a while. */
  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(change)
    this.#last = turn.catch(() => undefined)
    return turn
  }

  async deliveries(kind: Target['kind'], id: string, state: DeliveryRow['state'] | undefined, limit: number) {
    await this.require(kind, id)
    const { store } = this.#parts
    const [deliveries, total, dead, pending] = await Promise.all([
      store.deliveries(id, state, limit),
      store.count(id, state),
      store.count(id, 'dead'),
      store.count(id, 'pending'),
    ])
    return { deliveries, total, dead, pending }
  }
  /** A dead letter is tried again. Throws `webhook_not_found`, `delivery_not_found`, and `conflict` for one that is not dead. */
  async retry(kind: Target['kind'], id: string, eventId: string): Promise<DeliveryRow> {
    const { store, audit, now, changed } = this.#parts
    await this.require(kind, id)
    const found = (await store.delivery(id, eventId)) ?? missing(eventId)
    if (found.state !== 'dead')
      throw new Refusal('conflict', `The delivery is ${found.state}: only a dead one is tried again`)
    await store.commit([
      store.revive(id, eventId, now()),
      audit.entry({ event: 'webhook_changed', details: `webhook ${id}: delivery ${eventId} is to be tried again` }),
    ])
    changed()
    return (await store.delivery(id, eventId)) ?? missing(eventId)
  }
  secret(target: Target): Promise<string | undefined> {
    return target.has_secret ? this.#parts.vault.read(target.id) : Promise.resolve(undefined)
  }

  async #checkUrl(url: string): Promise<void> {
    try {
      await this.#parts.admit(url)
    } catch (error) {
      // The caller can mend it, so it is not the answer for somebody who may not.
      if (error instanceof Refusal) throw new Refusal('invalid_request', `url: ${error.message}`, { cause: error })
      throw error
    }
  }
}

function missing(eventId: string): never {
  throw new Refusal(
    'delivery_not_found',
    `No delivery ${eventId}; those that ended are kept for plugins.webhooks.retention_days`,
  )
}
/** What follows the host may hold a token. */
function originOf(url: string): string {
  return URL.parse(url)?.origin ?? 'an unknown address'
}
/** For the trail: what may hold a token is not in it, but that it is another one is. */
function factsOf({ name, url, events, enabled, has_secret: secret }: Target) {
  return { name, url: originOf(url), events, enabled, ...(secret ? { secret: 'set' } : {}) }
}
function isNew(before: Target, after: Target, secret: string | undefined) {
  return {
    ...(before.url !== after.url && originOf(before.url) === originOf(after.url)
      ? { url: `${originOf(after.url)}, another path` }
      : {}),
    ...(secret !== undefined && secret !== '' && before.has_secret ? { secret: 'replaced' } : {}),
  }
}
