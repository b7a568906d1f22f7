import * as v from 'valibot'
import { DaemonListening, messageOf } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { PluginContext } from 'svc/sdk'
import { AgentKilled, Agents, AgentSpawned } from '../agents/contract.ts'
import { Audit, AuditFeed } from '../audit/contract.ts'
import { ChannelMessages } from '../channels/contract.ts'
import { Chat, TurnEnded, TurnFailed, Turns } from '../chat/contract.ts'
import { Inference } from '../providers/contract.ts'
import { DeliveryPipeline } from './delivery-pipeline.ts'
import { migrations } from './migrations.ts'
import { addInbound } from './inbound/index.ts'
import { webhookRoutes } from './routes.ts'
import { Settings, Triggers } from './schema.ts'
import { HookReceived, WebhookSender } from './contract.ts'
import type { WebhookEvent, WebhookMessage } from './contract.ts'

const DAY_MS = 86_400_000
const ANSWERS_MS = 30_000

export default definePlugin({
  name: 'webhooks',
  version: '1.0.0',
  config: Settings,
  sections: { webhook_triggers: v.optional(Triggers, {}) },
  hooks: [HookReceived],
  requires: { audit: Audit, feed: AuditFeed, agents: Agents, chat: Chat, turns: Turns },
  optional: { inference: Inference, channels: ChannelMessages },
  provides: { sender: WebhookSender },
  migrations,
  pages: [
    { path: 'webhooks', title: 'Webhooks', group: 'Connections', file: 'pages/webhooks.html', assets: ['webhooks.js'] },
  ],
  setup(ctx) {
    const { config, hooks, jobs, log, routes, run, services } = ctx
    const background = (work: () => Promise<void>): void => {
      run(work).catch((error: unknown) => log.error('work for a webhook failed', { error: messageOf(error) }))
    }
    const pipeline = new DeliveryPipeline({ ...ctx, ...services, background })
    routes.add(
      ...webhookRoutes(
        () => pipeline.webhooks(),
        (target) => pipeline.sendTest(target),
      ),
    )
    const { answers, inbound, wakes, triggers } = addInbound(ctx, background)
    for (const hook of [AgentSpawned, AgentKilled, TurnEnded, TurnFailed]) hooks.on(hook, () => pipeline.wake())
    hooks.on(DaemonListening, () => pipeline.begin())
    jobs.every('deliver', config.poll_ms, () => pipeline.tick())
    if (triggers.enabled) {
      jobs.every('heartbeat', config.heartbeat_secs * 1000, async () => (await wakes()).flush(true))
      const deliverWaiting = async (): Promise<void> => {
        const delivery = await answers()
        for (const id of await delivery.waiting()) background(() => delivery.follow(id))
      }
      background(deliverWaiting)
      jobs.every('answers', ANSWERS_MS, deliverWaiting)
    }
    jobs.every('retention', 3_600_000, async () => {
      const before = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString()
      await pipeline.deleteOld()
      const store = await inbound()
      await store.commit([store.deleteSeen(before(2)), store.deleteWakes(before(7))])
      if (triggers.enabled) await (await answers()).deleteOld(before(7))
    })
    return { sender: createSender(ctx) }
  },
})

function createSender({ admit, config, fetch }: Pick<PluginContext<Settings, {}, {}>, 'admit' | 'config' | 'fetch'>) {
  return {
    admit,
    async post(url: string, { id, ...event }: WebhookEvent, signal: AbortSignal) {
      const { send } = await import('./send.ts')
      const body = JSON.stringify({ id, ...event })
      const seconds = Math.floor(Date.parse(event.timestamp) / 1000)
      return send(fetch, { url }, { id, body }, { secret: undefined, timeoutMs: config.timeout_ms, seconds, signal })
    },
    async send(url: string, { id, body, contentType, secret, headers }: WebhookMessage, signal: AbortSignal) {
      const { send } = await import('./send.ts')
      const options = { secret, timeoutMs: config.timeout_ms, seconds: Math.floor(Date.now() / 1000), signal }
      return send(fetch, { url }, { id, body }, { ...options, headers: { ...headers, 'content-type': contentType } })
    },
  }
}
