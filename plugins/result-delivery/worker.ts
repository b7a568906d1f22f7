import * as v from 'valibot'
import { toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { ChannelMessages, ChannelTarget } from '../channels/contract.ts'
import type { Job, JobOutcome } from '../queue/contract.ts'
import type { WebhookSender } from '../webhooks/contract.ts'
import type { Settings } from './config.ts'
import { DeliveryTarget } from './contract.ts'
import type { Result } from './contract.ts'

export interface WorkerDeps {
  readonly audit: Pick<Audit, 'entry'>
  readonly channels: () => Pick<ChannelMessages, 'send' | 'lastChat'> | undefined
  readonly webhooks: () => Pick<WebhookSender, 'post'> | undefined
  readonly settings: Settings
  readonly clock: Pick<Clock, 'now'>
  /** `error` is `null` when the receiver took it. */
  readonly ended: (target: DeliveryTarget, result: Result, error: string | null) => Promise<void>
}

const HOUR_MS = 3_600_000
const MIN_PAUSE_MS = 1_000
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
  if (target.kind === 'webhook') return post(deps, target.url, result, job)
  const channels = deps.channels()
  if (!channels) return later(deps, job, 'the plugin "channels" is not loaded')
  const chat = target.kind === 'channel' ? chatOf(target) : await channels.lastChat(result.agentId)
  if (!chat) return { outcome: 'dead', reason: 'the agent has not answered in any chat yet' }
  try {
    // The outbox of the channels tries again from here.
    const agentId = result.agentId === '' ? undefined : result.agentId
    await channels.send({ ...chat, id: result.id, agentId, text: result.text })
    return { outcome: 'done' }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { code, message, retryAfterSecs = 0 } = error
    if (code === 'service_unavailable' || code === 'rate_limit') return later(deps, job, message, retryAfterSecs * 1000)
    return { outcome: 'dead', reason: message }
  }
}

function chatOf(target: Extract<DeliveryTarget, { kind: 'channel' }>): ChannelTarget {
  const { channel, to, account, thread } = target
  return { channel, to, ...omitUndefined({ account, thread }) }
}

async function post(deps: WorkerDeps, url: string, result: Result, job: Job): Promise<JobOutcome> {
  const webhooks = deps.webhooks()
  if (!webhooks) return later(deps, job, 'the plugin "webhooks" is not loaded')
  const { id, event, agentId, text, data } = result
  const timestamp = toIso(job.createdAt)
  const body = { id, event, timestamp, data: { ...data, agent_id: agentId, text } }
  const { status, error, retryAfterMs } = await webhooks.post(url, body, job.signal)
  if (error === null) return { outcome: 'done' }
  if (status !== null && REFUSED.has(status)) return { outcome: 'dead', reason: error }
  return later(deps, job, error, retryAfterMs)
}

/** Waits as long again as it has waited already. */
function later(
  { settings, clock }: Pick<WorkerDeps, 'clock' | 'settings'>,
  { createdAt }: Job,
  reason: string,
  retryAfterMs = 0,
): JobOutcome {
  const { give_up_hours: hours, retry_max_secs: maxSecs } = settings
  const waitedMs = clock.now() - createdAt
  if (waitedMs > hours * HOUR_MS) return { outcome: 'dead', reason: `${reason}; given up after ${hours} hours` }
  const pauseMs = Math.min(Math.max(waitedMs, MIN_PAUSE_MS), maxSecs * 1000)
  return { outcome: 'postponed', afterMs: Math.max(retryAfterMs, pauseMs) }
}
