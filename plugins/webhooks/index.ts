import * as v from 'valibot'
import { createLimiter, DaemonListening, readVariable } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AgentKilled, Agents, AgentSpawned } from '../agents/contract.ts'
import { Audit, AuditFeed } from '../audit/contract.ts'
import { Chat, TurnEnded, TurnFailed, Turns } from '../chat/contract.ts'
import { Inference } from '../providers/contract.ts'
import { DeliveryPipeline } from './delivery-pipeline.ts'
import { InboundGate } from './inbound/gate.ts'
import { inboundRoutes } from './inbound/routes.ts'
import { InboundStore } from './inbound/store.ts'
import { WakeHandler } from './inbound/wake-handler.ts'
import { migrations } from './migrations.ts'
import { webhookRoutes } from './routes.ts'
import { Settings, Triggers } from './schema.ts'
import { HookReceived } from './contract.ts'

const DAY_MS = 86_400_000

export default definePlugin({
  name: 'webhooks',
  version: '1.0.0',
  config: Settings,
  sections: { webhook_triggers: v.optional(Triggers, {}) },
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
    const pipeline = new DeliveryPipeline({ ...ctx, ...services, background })
    routes.add(...webhookRoutes(pipeline.webhooks, (target) => pipeline.sendTest(target)))
    const { webhook_triggers: section } = config
    const token = section.token?.trim() || readVariable(section.token_env)?.trim() || undefined
    const triggers = { ...section, token }
    const inbound = new InboundStore(db)
    const limiter = createLimiter({
      tokens: triggers.rate_limit_per_minute,
      windowMs: 60_000,
      maxKeys: 10_000,
      now: () => performance.now(),
    })
    const gate = new InboundGate({
      triggers,
      store: inbound,
      limiter,
      failed: (failure) => ctx.credentials.failed(failure),
    })
    const wakes = new WakeHandler({ store: inbound, audit, agents, chat, turns, log })
    routes.add(
      ...inboundRoutes({
        gate,
        wakes,
        chat,
        turns,
        audit,
        hooks,
        models: () => ctx.optional('inference'),
        maxBytes: triggers.max_payload_bytes,
        background,
      }),
    )
    if (gate.problem !== undefined) log.warn(gate.problem)
    for (const hook of [AgentSpawned, AgentKilled, TurnEnded, TurnFailed]) hooks.on(hook, () => pipeline.wake())
    hooks.on(DaemonListening, () => pipeline.begin())
    jobs.every('deliver', config.poll_ms, () => pipeline.tick())
    if (triggers.enabled) jobs.every('heartbeat', config.heartbeat_secs * 1000, () => wakes.flush(true))
    jobs.every('retention', 3_600_000, async () => {
      const before = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString()
      await pipeline.deleteOld()
      await inbound.commit([inbound.deleteSeen(before(2)), inbound.deleteWakes(before(7))])
    })
    return {}
  },
})
