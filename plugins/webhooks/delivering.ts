import { randomUUID } from 'node:crypto'
import type { PluginContext, Tokens } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { Turns } from '../chat/contract.ts'
import { Dispatcher } from './dispatcher.ts'
import { Follower } from './follower.ts'
import type { Settings, Target } from './schema.ts'
import { send } from './sending.ts'
import type { Sent } from './sending.ts'
import { Webhooks } from './service.ts'
import { WebhookStore } from './store.ts'

export interface DeliveringParts extends Pick<
  PluginContext<Settings, Tokens, Tokens>,
  'config' | 'db' | 'vault' | 'fetch' | 'admit' | 'log' | 'metrics' | 'signal'
> {
  readonly audit: Audit
  readonly feed: AuditFeed
  readonly agents: Agents
  readonly turns: Turns
  readonly background: (work: () => Promise<void>) => void
}

/** Everything between an entry of the audit trail and the receiver of an event. Costs nothing while nobody is subscribed. */
export function createDelivering({
  config,
  db,
  vault,
  fetch,
  admit,
  log,
  metrics,
  signal,
  audit,
  feed,
  agents,
  turns,
  background,
}: DeliveringParts) {
  const store = new WebhookStore(db)
  const now = (): string => new Date().toISOString()
  /** Whether anybody is subscribed, as far as is known; looked up again now and then, because another process may share the database. */
  let subscribed = false
  let lookedAt = -Infinity
  let ticking: Promise<void> | undefined
  let again = false
  const webhooks = new Webhooks({
    store,
    audit,
    feed,
    vault,
    admit,
    most: config.max_webhooks,
    now,
    changed() {
      subscribed = true
      wake()
    },
  })
  const follower = new Follower({
    store,
    feed,
    agents: () => agents,
    turns: () => turns,
    maxWaiting: config.max_waiting,
    now,
  })
  const dispatcher = new Dispatcher({
    store,
    fetch,
    log,
    signal,
    settings: config,
    run: background,
    secret: (target) => webhooks.secret(target),
    counted: metrics.counter('svc_webhook_deliveries_total', 'Attempts to deliver an event to a webhook, by outcome'),
  })

  async function look(): Promise<void> {
    if (performance.now() - lookedAt < (subscribed ? 5_000 : 30_000)) return
    lookedAt = performance.now()
    subscribed = (await store.enabled()).length > 0
  }
  async function once(): Promise<void> {
    await look()
    if (!subscribed || signal.aborted) return
    await follower.follow(signal)
    await dispatcher.dispatch()
  }
  /** One at a time; a wish that comes meanwhile is granted by one more. */
  function tick(): Promise<void> {
    if (ticking) {
      again = true
      return ticking
    }
    ticking = once().finally(() => {
      ticking = undefined
      if (!again) return
      again = false
      wake()
    })
    return ticking
  }
  function wake(): void {
    if (subscribed && !signal.aborted) background(tick)
  }

  return {
    webhooks,
    tick,
    wake,
    /** Goes on with what an earlier run left. */
    async begin(): Promise<void> {
      if (db.dialect === 'sqlite') await store.releaseAll()
      lookedAt = -Infinity
      await tick()
    },
    async forget(): Promise<void> {
      if (config.retention_days > 0)
        await store.commit([store.forget(new Date(Date.now() - config.retention_days * 86_400_000).toISOString())])
    },
    async test(target: Target): Promise<Sent> {
      const at = now()
      const id = `evt_${randomUUID().replaceAll('-', '')}`
      const body = JSON.stringify({
        id,
        event: 'test',
        timestamp: at,
        webhook_id: target.id,
        message: 'A test of this webhook.',
      })
      return await send(
        fetch,
        target,
        { id, body },
        {
          secret: await webhooks.secret(target),
          timeoutMs: config.timeout_ms,
          seconds: Math.floor(Date.parse(at) / 1000),
          signal,
        },
      )
    },
  }
}
