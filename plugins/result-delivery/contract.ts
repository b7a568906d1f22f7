import * as v from 'valibot'
import { defineService, notify } from 'svc/sdk'
import type { Statement } from 'svc/sdk'

const MAX_URL = 2048
const id = (description: string) =>
  v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(256), v.description(description))

/** Where a result goes (API facts 2.5). */
export const DeliveryTarget = v.variant('kind', [
  v.strictObject({ kind: v.literal('none') }),
  v.strictObject({
    kind: v.literal('channel'),
    channel: id('A channel, such as telegram.'),
    to: id('The id of the chat on that platform.'),
    account: v.exactOptional(id('The account of the channel; needed when it has several.')),
    thread: v.exactOptional(id('A thread or topic of the chat.')),
  }),
  v.strictObject({ kind: v.literal('last_channel') }),
  v.strictObject({
    kind: v.literal('webhook'),
    url: v.pipe(v.string(), v.maxLength(MAX_URL), v.url('Expected a web address'), v.description('A POST goes here.')),
  }),
])
export type DeliveryTarget = v.InferOutput<typeof DeliveryTarget>

export interface Result {
  /** A UUID that is the same whenever the same result is delivered: the receiver gets it once. */
  readonly id: string
  /** Whose result it is; empty for a message of the daemon itself, which the manifest of no agent limits. */
  readonly agentId: string
  /** What it is the result of, such as `schedule.completed`; webhooks are told. */
  readonly event: string
  /** Markdown. */
  readonly text: string
  /** More for a webhook, such as the id of the schedule. JSON. */
  readonly data?: Readonly<Record<string, unknown>>
}

/** Brings the results of schedules, triggers and workflows to people and programs. */
export interface ResultDelivery {
  /**
   * Throws unless results can go there: `invalid_request`, `forbidden` or `channel_not_found`. `agentId`: the agent
   * chose it by itself, so its manifest has to permit the channel or the host.
   */
  check(target: DeliveryTarget, agentId?: string): Promise<void>
  /**
   * For the batch that records the result, so that neither is there without the other. Tried again as long as the
   * receiver is out of reach.
   */
  deliver(target: DeliveryTarget, result: Result): readonly Statement[]
}
export const ResultDelivery = defineService<ResultDelivery>()('result-delivery')

/** A result was taken by its receiver, or never will be. */
export const ResultDelivered = notify<{
  readonly id: string
  readonly agentId: string
  readonly target: DeliveryTarget
  readonly state: 'delivered' | 'failed'
  readonly error: string | null
}>('result-delivery:delivered')
