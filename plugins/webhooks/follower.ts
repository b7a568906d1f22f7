import type { Agents } from '../agents/contract.ts'
import type { AuditFeed } from '../audit/contract.ts'
import type { Turns } from '../chat/contract.ts'
import { happeningsOf, toEvent } from './events.ts'
import type { Happening } from './events.ts'
import type { Target } from './schema.ts'
import type { WebhookStore } from './store.ts'

const PAGE = 500
/** Characters of an answer that go along. */
const TEXT = 32_768

export interface FollowerParts {
  readonly store: WebhookStore
  readonly feed: AuditFeed
  readonly agents: () => Agents | undefined
  readonly turns: () => Turns | undefined
  readonly maxWaiting: number
  readonly now: () => string
}

/**
 * Turns entries of the audit trail into deliveries. An entry is on disk if and only if what it tells of is, and how far each target
 * was told is stored in the same batch as its deliveries: so nothing is lost or made up by a crash, and those who cause events pay
 * nothing.
 */
export class Follower {
  readonly #parts: FollowerParts
  constructor(parts: FollowerParts) {
    this.#parts = parts
  }

  /** Reads on from where the targets are. Whether there was anything for one of them. */
  async follow(signal: AbortSignal): Promise<boolean> {
    const { store, feed } = this.#parts
    let any = false
    for (;;) {
      const targets = await store.enabled()
      if (targets.length === 0 || signal.aborted) return any
      const entries = await feed.following(Math.min(...targets.map(({ position }) => position)), PAGE)
      const last = entries.at(-1)
      if (!last) return any
      const found = entries.flatMap((entry) =>
        happeningsOf(entry).flatMap((happening) => {
          const wanted = targets.filter(
            ({ position, events }) => position < entry.id && nameFor(events, happening.event) !== undefined,
          )
          return wanted.length > 0 ? [{ happening, wanted }] : []
        }),
      )
      const room = new Map(
        await Promise.all(
          targets.map(async ({ id }) => [id, this.#parts.maxWaiting - (await store.count(id, 'pending'))] as const),
        ),
      )
      const now = this.#parts.now()
      const statements = []
      for (const { happening, wanted } of found) {
        const data = JSON.stringify(await this.#told(happening))
        for (const target of wanted) {
          const left = room.get(target.id) ?? 0
          room.set(target.id, left - 1)
          statements.push(
            store.enqueue(
              {
                targetId: target.id,
                eventId: happening.id,
                event: nameFor(target.events, happening.event) ?? happening.event,
                at: happening.at,
                data,
                ...(left > 0 ? {} : { dead: `more than ${this.#parts.maxWaiting} deliveries wait for this target` }),
              },
              now,
            ),
          )
        }
      }
      await store.commit([
        ...statements,
        ...targets.filter(({ position }) => position < last.id).map(({ id }) => store.told(id, last.id)),
      ])
      any ||= statements.length > 0
      if (entries.length < PAGE) return any
    }
  }

  /** What a receiver would otherwise have to ask for. What is gone by now is left out. */
  async #told({ agentId, turnId, event, data }: Happening): Promise<Record<string, unknown>> {
    const agent = agentId === '' ? undefined : await this.#parts.agents()?.find(agentId)
    const turn =
      turnId === undefined || !['message_received', 'message_completed', 'agent_error'].includes(event)
        ? undefined
        : await this.#parts.turns()?.find(turnId)
    return {
      ...data,
      ...(agent ? { agent_name: agent.name } : {}),
      ...(turn ? { session_id: turn.sessionId, received_at: turn.createdAt } : {}),
      ...(turn && event !== 'message_received'
        ? {
            response: turn.text.slice(0, TEXT),
            iterations: turn.iterations,
            cost_usd: turn.costUsd,
            ...(turn.error === null ? {} : { error: turn.error }),
            ...(turn.usage ? { usage: { input_tokens: turn.usage.input, output_tokens: turn.usage.output } } : {}),
          }
        : {}),
    }
  }
}

/** What a target calls an event it asked for; `undefined` when it did not. */
function nameFor(events: Target['events'], event: Happening['event']): string | undefined {
  const own = events.find((name) => toEvent(name) === event)
  return own ?? (events.some((name) => toEvent(name) === 'all') ? event : undefined)
}
