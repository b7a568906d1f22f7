import { wallClock } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { ChannelMessages } from '../channels/contract.ts'
import { Queue } from '../queue/contract.ts'
import { WebhookSender } from '../webhooks/contract.ts'
import { Settings } from './config.ts'
import { ResultDelivered, ResultDelivery } from './contract.ts'
import type { DeliveryTarget, Result } from './contract.ts'

/** The lane of the queue. */
const LANE = 'result'

export default definePlugin({
  name: 'result-delivery',
  version: '1.0.0',
  config: Settings,
  requires: { agents: Agents, audit: Audit, queue: Queue },
  optional: { channels: ChannelMessages, webhooks: WebhookSender },
  provides: { delivery: ResultDelivery },
  hooks: [ResultDelivered],
  setup({ config, hooks, metrics, optional, own, services: { agents, audit, queue } }) {
    const results = metrics.counter('svc_results_total', 'Results that were delivered, by kind of target and outcome.')
    const deps = {
      agents,
      audit,
      settings: config,
      clock: wallClock,
      channels: () => optional('channels'),
      webhooks: () => optional('webhooks'),
      ended(target: DeliveryTarget, { id, agentId }: Result, error: string | null) {
        const state = error === null ? 'delivered' : 'failed'
        results.add(1, { kind: target.kind, outcome: state })
        return hooks.emit(ResultDelivered, { id, agentId, target, state, error })
      },
    }
    own(
      'worker',
      queue.work(LANE, {
        async run(job) {
          const { deliver } = await import('./worker.ts')
          return deliver(deps, job)
        },
        async dead(job, reason) {
          const { undelivered } = await import('./worker.ts')
          return undelivered(deps, job.payload, reason)
        },
      }),
    )
    return {
      delivery: {
        async check(target: DeliveryTarget, agentId?: string) {
          const { checkTarget } = await import('./check.ts')
          await checkTarget(deps, target, agentId)
        },
        deliver(target: DeliveryTarget, result: Result) {
          if (target.kind === 'none') return []
          return [queue.add({ lane: LANE, id: result.id, agentId: result.agentId, payload: { target, result } })]
        },
      },
    }
  },
})
