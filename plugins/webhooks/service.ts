import { Refusal, SerialQueue } from 'svc/sdk'
import type { Vault } from 'svc/sdk'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { DeliveryRow, Target } from './schema.ts'
import type { DeliveryCounts, WebhookStore } from './store.ts'

export interface WebhooksDeps {
  readonly store: WebhookStore
  readonly audit: Audit
  readonly feed: AuditFeed
  readonly vault: Pick<Vault, 'read' | 'write' | 'remove'>
  readonly admit: (url: string) => Promise<void>
  readonly maxWebhooks: number
  readonly now: () => string
  /** Called after every change of the subscriptions. */
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

/** The subscriptions. The secret of a target is in the vault under the id of the target. */
export class Webhooks {
  readonly #deps: WebhooksDeps
  /** Each change builds on the one before. Addresses are resolved before, which may take a while. */
  readonly #changes = new SerialQueue()
  constructor(deps: WebhooksDeps) {
    this.#deps = deps
  }

  list(kind: Target['kind']): Promise<readonly Target[]> {
    return this.#deps.store.list(kind)
  }
  /** How many deliveries are dead and how many wait, by the target that has any. */
  counts(): Promise<ReadonlyMap<string, DeliveryCounts>> {
    return this.#deps.store.counts()
  }
  async find(kind: Target['kind'], id: string): Promise<Target | undefined> {
    const target = await this.#deps.store.find(id)
    return target?.kind === kind ? target : undefined
  }
  /** Throws `webhook_not_found`. */
  async require(kind: Target['kind'], id: string): Promise<Target> {
    const target = await this.find(kind, id)
    if (!target) throw new Refusal('webhook_not_found', `No webhook ${id}`)
    return target
  }

  /** Throws `invalid_request` for an address that must not be reached, `conflict` when there are too many. */
  async add(kind: Target['kind'], { id, name, url, events, secret, enabled }: NewTarget): Promise<Target> {
    await this.#checkUrl(url)
    return this.#changes.run(() => this.#insert(kind, { id, name, url, events, secret, enabled }))
  }
  async #insert(kind: Target['kind'], { id, name, url, events, secret, enabled }: NewTarget): Promise<Target> {
    const { store, audit, feed, vault, maxWebhooks, now, changed } = this.#deps
    if ((await store.list(kind)).length >= maxWebhooks)
      throw new Refusal(
        'conflict',
        `There are ${maxWebhooks} webhooks already, the maximum that plugins.webhooks.max_webhooks allows`,
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

  /**
   * Throws `webhook_not_found`, and as `add`. An empty secret, or `null`, removes it. A target that is enabled again
   * does not get the events of the time it was off.
   */
  async change(kind: Target['kind'], id: string, change: TargetChange): Promise<Target> {
    const { url } = await this.require(kind, id)
    if (change.url !== undefined && change.url !== url) await this.#checkUrl(change.url)
    return this.#changes.run(() => this.#update(kind, id, change))
  }
  async #update(kind: Target['kind'], id: string, change: TargetChange): Promise<Target> {
    const before = await this.require(kind, id)
    const { store, audit, feed, vault, now, changed } = this.#deps
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
        change: { before: toAuditFields(before), after: toChangedAuditFields(before, target, secret) },
      }),
    ]
    if (secret === undefined) await store.commit(statements)
    else if (secret === '') await vault.remove(id, statements)
    else await vault.write(id, secret, statements)
    changed()
    return target
  }

  /** Throws `webhook_not_found`. Waiting deliveries are dropped. */
  remove(kind: Target['kind'], id: string): Promise<void> {
    return this.#changes.run(async () => {
      const { store, audit, vault, changed } = this.#deps
      const target = await this.require(kind, id)
      await vault.remove(id, [
        ...store.remove(id),
        audit.entry({ event: 'webhook_changed', details: `webhook ${id} "${target.name}" removed` }),
      ])
      changed()
    })
  }

  async deliveries(kind: Target['kind'], id: string, state: DeliveryRow['state'] | undefined, limit: number) {
    await this.require(kind, id)
    const { store } = this.#deps
    const [deliveries, total, dead, pending] = await Promise.all([
      store.deliveries(id, state, limit),
      store.count(id, state),
      store.count(id, 'dead'),
      store.count(id, 'pending'),
    ])
    return { deliveries, total, dead, pending }
  }
  /**
   * Revives a dead letter. Throws `webhook_not_found`, `delivery_not_found`, and `conflict` for one that is not dead.
   */
  async retry(kind: Target['kind'], id: string, eventId: string): Promise<DeliveryRow> {
    const { store, audit, now, changed } = this.#deps
    await this.require(kind, id)
    const found = (await store.delivery(id, eventId)) ?? throwNotFound(eventId)
    if (found.state !== 'dead')
      throw new Refusal('conflict', `The delivery is ${found.state}: only a dead one is tried again`)
    await store.commit([
      store.revive(id, eventId, now()),
      audit.entry({ event: 'webhook_changed', details: `webhook ${id}: delivery ${eventId} is to be tried again` }),
    ])
    changed()
    return (await store.delivery(id, eventId)) ?? throwNotFound(eventId)
  }
  secret(target: Target): Promise<string | undefined> {
    return target.has_secret ? this.#deps.vault.read(target.id) : Promise.resolve(undefined)
  }

  async #checkUrl(url: string): Promise<void> {
    try {
      await this.#deps.admit(url)
    } catch (error) {
      // The caller can correct the address: 400, not 403.
      if (error instanceof Refusal) throw new Refusal('invalid_request', `url: ${error.message}`, { cause: error })
      throw error
    }
  }
}

function throwNotFound(eventId: string): never {
  throw new Refusal(
    'delivery_not_found',
    `No delivery ${eventId}; those that ended are kept for plugins.webhooks.retention_days`,
  )
}
/** Path and query may hold a token. */
function originOf(url: string): string {
  return URL.parse(url)?.origin ?? 'an unknown address'
}
/** For the audit trail: without what may hold a token. */
function toAuditFields({ name, url, events, enabled, has_secret: secret }: Target) {
  return { name, url: originOf(url), events, enabled, ...(secret ? { secret: 'set' } : {}) }
}
/** Includes changes of hidden parts. */
function toChangedAuditFields(before: Target, after: Target, secret: string | undefined) {
  const origin = originOf(after.url)
  const hasOtherPath = before.url !== after.url && originOf(before.url) === origin
  const hasOtherSecret = secret !== undefined && secret !== '' && before.has_secret
  return {
    ...toAuditFields(after),
    ...(hasOtherPath ? { url: `${origin}, another path` } : {}),
    ...(hasOtherSecret ? { secret: 'replaced' } : {}),
  }
}
