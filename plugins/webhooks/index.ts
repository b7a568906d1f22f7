import { createLimiter, DaemonListening } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AgentKilled, Agents, AgentSpawned } from '../agents/contract.ts'
import { Audit, AuditFeed } from '../audit/contract.ts'
import { Chat, TurnEnded, TurnFailed, Turns } from '../chat/contract.ts'
import { Inference } from '../providers/contract.ts'
import { createDelivering } from './delivering.ts'
import { InboundGate } from './inbound/gate.ts'
import { inboundRoutes } from './inbound/routes.ts'
import { InboundStore } from './inbound/store.ts'
import { Waker } from './inbound/waker.ts'
import { migrations } from './migrations.ts'
import { webhookRoutes } from './routes.ts'
import { Settings } from './schema.ts'
import { HookReceived } from './contract.ts'

const DAY = 86_400_000

export default definePlugin({
  name: 'webhooks',
  version: '1.0.0',
  config: Settings,
  sections: ['webhook_triggers'],
  hooks: [HookReceived],
  requires: { audit: Audit, feed: AuditFeed, agents: Agents, chat: Chat, turns: Turns },
  optional: { inference: Inference },
  migrations,
  setup(ctx) {
    const { config, db, hooks, jobs, log, routes, run, services } = ctx
    const { audit, agents, chat, turns } = services
    const background = (work: () => Promise<void>): void => {
      run(work).catch((error: unknown) =>
        log.error('work for a webhook failed', { error: error instanceof Error ? error.message : String(error) }),
      )
    }
    const delivering = createDelivering({ ...ctx, ...services, background })
    routes.add(...webhookRoutes(delivering.webhooks, delivering.test))
    const { webhook_triggers: triggers } = config
    const inbound = new InboundStore(db)
    const gate = new InboundGate(
      triggers,
      inbound,
      createLimiter({
        tokens: triggers.rate_limit_per_minute,
        windowMs: 60_000,
        maxKeys: 10_000,
        now: () => performance.now(),
      }),
      (failure) => ctx.credentials.failed(failure),
    )
    const waker = new Waker({ store: inbound, audit, agents, chat, turns, log })
    routes.add(
      ...inboundRoutes({
        gate,
        waker,
        chat,
        turns,
        audit,
        hooks,
        models: { inference: () => ctx.optional('inference') },
        maxBytes: triggers.max_payload_bytes,
        background,
      }),
    )
    if (gate.problem !== undefined) log.warn(gate.problem)
    for (const hook of [AgentSpawned, AgentKilled, TurnEnded, TurnFailed]) hooks.on(hook, () => delivering.wake())
    hooks.on(DaemonListening, () => delivering.begin())
    jobs.every('deliver', config.poll_ms, () => delivering.tick())
    if (triggers.enabled) jobs.every('heartbeat', config.heartbeat_secs * 1000, () => waker.flush(true))
    jobs.every('retention', 3_600_000, async () => {
      const before = (days: number): string => new Date(Date.now() - days * DAY).toISOString()
      await delivering.forget()
      await inbound.commit([inbound.forgetSeen(before(2)), inbound.forgetWakes(before(7))])
    })
    return {}
  },
})
