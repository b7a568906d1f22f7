import { allowsHost } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { ChannelMessages } from '../channels/contract.ts'
import type { WebhookSender } from '../webhooks/contract.ts'
import type { DeliveryTarget } from './contract.ts'

export interface CheckDeps {
  readonly agents: Pick<Agents, 'require'>
  readonly channels: () => Pick<ChannelMessages, 'check'> | undefined
  readonly webhooks: () => Pick<WebhookSender, 'admit'> | undefined
}

/** Throws unless results can go to the target, and the agent may choose it when it did. */
export async function checkTarget(
  { agents, channels, webhooks }: CheckDeps,
  target: DeliveryTarget,
  agentId: string | undefined,
): Promise<void> {
  if (target.kind === 'channel') {
    const service = channels()
    if (!service) throw notLoaded('channels')
    const { kind: _, ...chat } = target
    await service.check({ ...chat, agentId })
  }
  if (target.kind === 'last_channel' && !channels()) throw notLoaded('channels')
  if (target.kind !== 'webhook') return
  const service = webhooks()
  if (!service) throw notLoaded('webhooks')
  const url = new URL(target.url)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new Refusal('invalid_request', `delivery.url: ${url.protocol} is no protocol for a webhook`)
  if (agentId !== undefined) {
    const { manifest } = await agents.require(agentId)
    if (!allowsHost(manifest.capabilities.network, url))
      throw new Refusal('forbidden', `delivery.url: capabilities.network of the agent does not allow ${url.host}`)
  }
  await service.admit(target.url)
}

function notLoaded(plugin: string): Refusal {
  return new Refusal('invalid_request', `delivery.kind: the plugin "${plugin}" is not loaded`)
}
