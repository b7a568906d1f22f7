import * as v from 'valibot'
import { toIso } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { ChannelMessages, ChannelTarget } from '../channels/contract.ts'
import type { Job, JobOutcome } from '../queue/contract.ts'
import type { WebhookSender } from '../webhooks/contract.ts'
import { DeliveryTarget } from './contract.ts'
import type { Result } from './contract.ts'

export interface WorkerDeps {
  readonly audit: Pick<Audit, 'entry'>
  readonly channels: () => Pick<ChannelMessages, 'send' | 'lastChat'> | undefined
  readonly webhooks: () => Pick<WebhookSender, 'post'> | undefined
  /** `error` is `null` when the receiver took it. */
  readonly ended: (target: DeliveryTarget, result: Result, error: string | null) => Promise<void>
}

const PLUGIN_MISSING_MS = 60_000
const GIVE_UP_MS = 86_400_000
const MAX_PAUSE_MS = 3_600_000
/** What a receiver answers that will not take the result later either. */
const REFUSED: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 410, 413, 415, 422])

const Payload = v.object({
  target: DeliveryTarget,
  result: v.object({
    id: v.string(),
    agentId: v.string(),
    event: v.string(),
    text: v.string(),
    data: v.exactOptional(v.record(v.string(), v.unknown())),
  }),
})

/** Brings one result to its receiver. */
export async function deliver(deps: WorkerDeps, job: Job): Promise<JobOutcome> {
  const { target, result } = v.parse(Payload, job.payload)
  const outcome = await attempt(deps, target, result, job)
  if (outcome.outcome === 'postponed') return outcome
  const error = outcome.outcome === 'dead' ? outcome.reason : null
  if (error !== null) return { ...outcome, statements: await undelivered(deps, job.payload, error) }
  await deps.ended(target, result, null)
  return outcome
}
/** It never reaches its receiver: for the batch that ends its job. */
export async function undelivered(deps: WorkerDeps, payload: unknown, error: string): Promise<readonly Statement[]> {
  const { target, result } = v.parse(Payload, payload)
  await deps.ended(target, result, error)
  const details = `result ${result.id} of ${result.event} was not delivered by ${target.kind}: ${error}`
  return [deps.audit.entry({ event: 'result_undelivered', agentId: result.agentId, details })]
}

async function attempt(deps: WorkerDeps, target: DeliveryTarget, result: Result, job: Job): Promise<JobOutcome> {
  if (target.kind === 'none') return { outcome: 'done' }
  if (target.kind === 'webhook') return post(deps.webhooks(), target.url, result, job)
  const channels = deps.channels()
  if (!channels) return waitForPlugin(job, 'channels')
  const chat = target.kind === 'channel' ? chatOf(target) : await channels.lastChat(result.agentId)
  if (!chat) return { outcome: 'dead', reason: 'the agent has not answered in any chat yet' }
  try {
    // The outbox of the channels tries again from here.
    const agentId = result.agentId === '' ? undefined : result.agentId
    await channels.send({ ...chat, id: result.id, agentId, text: result.text })
    return { outcome: 'done' }
  } catch (error) {
    if (error instanceof Refusal && error.code !== 'service_unavailable' && error.code !== 'rate_limit')
      return { outcome: 'dead', reason: error.message }
    throw error
  }
}

function chatOf(target: Extract<DeliveryTarget, { kind: 'channel' }>): ChannelTarget {
  const { channel, to, account, thread } = target
  return { channel, to, ...omitUndefined({ account, thread }) }
}

async function post(
  webhooks: Pick<WebhookSender, 'post'> | undefined,
  url: string,
  result: Result,
  job: Job,
): Promise<JobOutcome> {
  if (!webhooks) return waitForPlugin(job, 'webhooks')
  const { id, event, agentId, text, data } = result
  const timestamp = toIso(job.createdAt)
  const body = { id, event, timestamp, data: { ...data, agent_id: agentId, text } }
  const { status, error, retryAfterMs } = await webhooks.post(url, body, job.signal)
  if (error === null) return { outcome: 'done' }
  if (status !== null && REFUSED.has(status)) return { outcome: 'dead', reason: error }
  if (isTooOld(job)) return { outcome: 'dead', reason: `${error}; given up after a day` }
  return { outcome: 'postponed', afterMs: Math.max(retryAfterMs ?? 0, pause(job)) }
}

/** As long again as it has waited already, up to an hour. */
function pause({ createdAt }: Job): number {
  return Math.min(Math.max(Date.now() - createdAt, 1_000), MAX_PAUSE_MS)
}
const isTooOld = ({ createdAt }: Job): boolean => Date.now() - createdAt > GIVE_UP_MS

function waitForPlugin(job: Job, plugin: string): JobOutcome {
  return isTooOld(job)
    ? { outcome: 'dead', reason: `the plugin "${plugin}" was not loaded for a day` }
    : { outcome: 'postponed', afterMs: PLUGIN_MISSING_MS }
}
