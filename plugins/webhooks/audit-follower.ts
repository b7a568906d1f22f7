import { omitUndefined } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { AuditFeed } from '../audit/contract.ts'
import type { TurnView, Turns } from '../chat/contract.ts'
import { toEventName, toWebhookEvents } from './events.ts'
import type { WebhookEvent } from './events.ts'
import type { Target } from './schema.ts'
import type { WebhookStore } from './store.ts'

const PAGE_SIZE = 500
/** A longer answer is sent without its end. */
const MAX_ANSWER_CHARS = 32_768
const TURN_EVENTS: ReadonlySet<string> = new Set(['message_received', 'message_completed', 'agent_error'])

export interface AuditFollowerDeps {
  readonly store: WebhookStore
  readonly feed: AuditFeed
  readonly agents: Pick<Agents, 'find'>
  readonly turns: Pick<Turns, 'find'>
  readonly maxWaiting: number
  readonly now: () => string
}

/**
 * Turns entries of the audit trail into deliveries. An entry is on disk if and only if its change is, and the position
 * of each target is stored in the same batch as its deliveries: a crash neither loses nor invents events, and the code
 * that causes events pays nothing.
 */
export class AuditFollower {
  readonly #deps: AuditFollowerDeps
  constructor(deps: AuditFollowerDeps) {
    this.#deps = deps
  }

  /** Reads on from the positions of the targets. Whether any delivery was added. */
  async follow(signal: AbortSignal): Promise<boolean> {
    const { store, feed } = this.#deps
    let hasAny = false
    for (;;) {
      const targets = await store.enabled()
      if (targets.length === 0 || signal.aborted) return hasAny
      const entries = await feed.following(Math.min(...targets.map(({ position }) => position)), PAGE_SIZE)
      const last = entries.at(-1)
      if (!last) return hasAny
      const deliveries = await this.#enqueue(targets, entries)
      const positions = targets
        .filter(({ position }) => position < last.id)
        .map(({ id }) => store.advancePosition(id, last.id))
      await store.commit([...deliveries, ...positions])
      hasAny ||= deliveries.length > 0
      if (entries.length < PAGE_SIZE) return hasAny
    }
  }

  async #enqueue(
    targets: readonly Target[],
    entries: Awaited<ReturnType<AuditFeed['following']>>,
  ): Promise<readonly Statement[]> {
    const { store, maxWaiting } = this.#deps
    const room = new Map<string, number>()
    for (const { id } of targets) room.set(id, maxWaiting - (await store.count(id, 'pending')))
    const now = this.#deps.now()
    const statements: Statement[] = []
    for (const entry of entries)
      for (const event of toWebhookEvents(entry)) {
        const subscribed = targets.filter(
          ({ position, events }) => position < entry.id && subscribedName(events, event.event) !== undefined,
        )
        if (subscribed.length === 0) continue
        const data = JSON.stringify(await this.#describe(event))
        for (const target of subscribed) {
          const left = room.get(target.id) ?? 0
          room.set(target.id, left - 1)
          const delivery = {
            targetId: target.id,
            eventId: event.id,
            event: subscribedName(target.events, event.event) ?? event.event,
            at: event.at,
            data,
            dead: left > 0 ? undefined : `more than ${maxWaiting} deliveries wait for this target`,
          }
          statements.push(store.enqueue(omitUndefined(delivery), now))
        }
      }
    return statements
  }

  /** Adds details that a receiver would otherwise have to look up. Removed objects are left out. */
  async #describe({ agentId, turnId, event, data }: WebhookEvent): Promise<Record<string, unknown>> {
    const { agents, turns } = this.#deps
    const agent = agentId === '' ? undefined : await agents.find(agentId)
    const turn = turnId === undefined || !TURN_EVENTS.has(event) ? undefined : await turns.find(turnId)
    return {
      ...data,
      ...omitUndefined({ agent_name: agent?.name }),
      ...(turn ? { session_id: turn.sessionId, received_at: turn.createdAt } : {}),
      ...(turn && event !== 'message_received' ? describeAnswer(turn) : {}),
    }
  }
}

function describeAnswer({ text, iterations, costUsd, error, usage }: TurnView): Record<string, unknown> {
  return {
    response: text.slice(0, MAX_ANSWER_CHARS),
    iterations,
    cost_usd: costUsd,
    ...omitUndefined({
      error: error ?? undefined,
      usage: usage ? { input_tokens: usage.input, output_tokens: usage.output } : undefined,
    }),
  }
}

/** The name under which a target subscribed to an event; `undefined` when it did not. */
function subscribedName(events: Target['events'], event: WebhookEvent['event']): string | undefined {
  const own = events.find((name) => toEventName(name) === event)
  return own ?? (events.some((name) => toEventName(name) === 'all') ? event : undefined)
}
