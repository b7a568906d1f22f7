import { randomUUID } from 'node:crypto'
import type { Counter, PluginContext, Tokens } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { Turns } from '../chat/contract.ts'
import type { AuditFollower } from './audit-follower.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Settings, Target } from './schema.ts'
import type { SendResult } from './send.ts'
import type { Webhooks } from './service.ts'
import { WebhookStore } from './store.ts'

/** How long "no subscriptions" or "some" is cached: another process may share the database. */
const UNSUBSCRIBED_CHECK_MS = 30_000
const SUBSCRIBED_CHECK_MS = 5_000
const DAY_MS = 86_400_000

export interface DeliveryPipelineDeps extends Pick<
  PluginContext<Settings, Tokens, Tokens>,
  'config' | 'db' | 'vault' | 'fetch' | 'admit' | 'log' | 'metrics' | 'signal'
> {
  readonly audit: Audit
  readonly feed: AuditFeed
  readonly agents: Agents
  readonly turns: Turns
  readonly background: (work: () => Promise<void>) => void
}

/** Delivers entries of the audit trail to the receivers of webhooks. Idle without subscriptions. */
export class DeliveryPipeline {
  #webhooks: Promise<Webhooks> | undefined
  readonly #deps: DeliveryPipelineDeps
  readonly #store: WebhookStore
  readonly #deliveries: Counter
  /** Loaded with the first pass that has a subscriber. */
  #workers: Promise<{ readonly follower: AuditFollower; readonly dispatcher: Dispatcher }> | undefined
  #isSubscribed = false
  #checkedAt = -Infinity
  #pass: Promise<void> | undefined
  #isPassRequested = false

  constructor(deps: DeliveryPipelineDeps) {
    const { db, log, metrics } = deps
    this.#deps = deps
    this.#store = new WebhookStore(db, log)
    // The first pass may still run while the plugin unloads, which accepts no metric any more.
    this.#deliveries = metrics.counter(
      'svc_webhook_deliveries_total',
      'Attempts to deliver an event to a webhook, by outcome',
    )
  }

  /** The subscriptions, whose code is loaded by whoever asks first. */
  webhooks(): Promise<Webhooks> {
    return (this.#webhooks ??= this.#openWebhooks())
  }
  async #openWebhooks(): Promise<Webhooks> {
    const { config, vault, admit, audit, feed } = this.#deps
    const { Webhooks } = await import('./service.ts')
    return new Webhooks({
      store: this.#store,
      audit,
      feed,
      vault,
      admit,
      maxWebhooks: config.max_webhooks,
      now: isoNow,
      changed: () => {
        this.#isSubscribed = true
        this.wake()
      },
    })
  }

  async #createWorkers(): Promise<{ readonly follower: AuditFollower; readonly dispatcher: Dispatcher }> {
    const { config, feed, agents, turns, fetch, log, signal, background } = this.#deps
    const store = this.#store
    const { AuditFollower } = await import('./audit-follower.ts')
    const { Dispatcher } = await import('./dispatcher.ts')
    const follower = new AuditFollower({ store, feed, agents, turns, maxWaiting: config.max_waiting, now: isoNow })
    const dispatcher = new Dispatcher({
      store,
      fetch,
      log,
      signal,
      settings: config,
      run: background,
      secret: async (target) => (await this.webhooks()).secret(target),
      deliveries: this.#deliveries,
    })
    return { follower, dispatcher }
  }

  /** Continues what an earlier run left. */
  async begin(): Promise<void> {
    if (this.#deps.db.dialect === 'sqlite') await this.#store.releaseAll()
    this.#checkedAt = -Infinity
    await this.tick()
  }

  /** One pass at a time; requests during a pass lead to one more. */
  tick(): Promise<void> {
    if (this.#pass) {
      this.#isPassRequested = true
      return this.#pass
    }
    this.#pass = this.#runPass().finally(() => {
      this.#pass = undefined
      if (!this.#isPassRequested) return
      this.#isPassRequested = false
      this.wake()
    })
    return this.#pass
  }

  wake(): void {
    if (this.#isSubscribed && !this.#deps.signal.aborted) this.#deps.background(() => this.tick())
  }

  async #runPass(): Promise<void> {
    const { signal } = this.#deps
    await this.#checkSubscribed()
    if (!this.#isSubscribed || signal.aborted) return
    const { follower, dispatcher } = await (this.#workers ??= this.#createWorkers())
    await follower.follow(signal)
    await dispatcher.dispatch()
  }

  async #checkSubscribed(): Promise<void> {
    const holdsMs = this.#isSubscribed ? SUBSCRIBED_CHECK_MS : UNSUBSCRIBED_CHECK_MS
    if (performance.now() - this.#checkedAt < holdsMs) return
    this.#checkedAt = performance.now()
    this.#isSubscribed = (await this.#store.enabled()).length > 0
  }

  async deleteOld(): Promise<void> {
    const days = this.#deps.config.retention_days
    if (days === 0) return
    await this.#store.commit([this.#store.deleteSettled(new Date(Date.now() - days * DAY_MS).toISOString())])
  }

  /** Sends a test event once, whether or not the target is enabled. */
  async sendTest(target: Target): Promise<SendResult> {
    const { fetch, config, signal } = this.#deps
    const timestamp = isoNow()
    const id = `evt_${randomUUID().replaceAll('-', '')}`
    const body = JSON.stringify({
      id,
      event: 'test',
      timestamp,
      webhook_id: target.id,
      message: 'A test of this webhook.',
    })
    const options = {
      secret: await (await this.webhooks()).secret(target),
      timeoutMs: config.timeout_ms,
      seconds: Math.floor(Date.parse(timestamp) / 1000),
      signal,
    }
    const { send } = await import('./send.ts')
    return send(fetch, target, { id, body }, options)
  }
}

function isoNow(): string {
  return new Date().toISOString()
}
