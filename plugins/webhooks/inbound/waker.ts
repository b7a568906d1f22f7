import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Chat, Turns } from '../../chat/contract.ts'
import type { WakeRow } from '../schema.ts'
import type { InboundStore } from './store.ts'

const BATCH = 100
/** Beats until it is given up: nobody there takes messages. */
const MOST_ATTEMPTS = 20
/** Text of others joined into one message stays below what a message may have. */
const MOST_CHARS = 32_000

export interface WakerParts {
  readonly store: InboundStore
  readonly audit: Audit
  readonly agents: Agents
  readonly chat: Chat
  readonly turns: Turns
  readonly log: { warn(message: string, facts?: object): void }
}

/** Hands what came from outside to agents. It is on disk before it is answered, and a turn with its own id, so that none is made twice. */
export class Waker {
  readonly #parts: WakerParts
  #flushing: Promise<void> = Promise.resolve()
  constructor(parts: WakerParts) {
    this.#parts = parts
  }

  /** By name or id; the first one when nobody is named. Throws `agent_not_found`. */
  async choose(wanted: string | undefined): Promise<Agent> {
    const { agents } = this.#parts
    const found =
      wanted === undefined
        ? (await agents.list())[0]
        : ((/^[0-9a-f-]{36}$/i.test(wanted) ? await agents.find(wanted) : undefined) ??
          (await agents.findByName(wanted)))
    if (found) return found
    if (wanted === undefined) throw new Refusal('agent_not_found', 'There is no agent')
    const names = (await agents.list()).map(({ name }) => name)
    throw new Refusal('agent_not_found', `There is no agent "${wanted}"${suggest(findNearest(wanted, names))}`)
  }

  has(id: string): Promise<boolean> {
    return this.#parts.store.has(id)
  }

  async accept(row: Omit<WakeRow, 'attempts'>): Promise<void> {
    const { store, audit } = this.#parts
    await store.commit([
      store.wake(row),
      audit.entry({
        event: 'webhook_received',
        details: `wake ${row.id} (${row.mode}): ${row.text.length} characters`,
      }),
    ])
  }

  /** Hands over what waits for nothing; on a beat everything else too. One after the other. */
  flush(beat: boolean): Promise<void> {
    const next = this.#flushing.then(() => this.#flush(beat))
    // The caller is told; the next one starts afresh.
    this.#flushing = next.catch(() => undefined)
    return next
  }

  async #flush(beat: boolean): Promise<void> {
    const rows = await this.#parts.store.waiting(BATCH)
    for (const row of rows.filter(({ mode, attempts }) => mode === 'now' && (beat || attempts === 0)))
      await this.#hand([row])
    if (!beat) return
    for (const group of Map.groupBy(
      rows.filter(({ mode }) => mode === 'next_heartbeat'),
      ({ agent }) => agent,
    ).values()) {
      let joined: WakeRow[] = []
      for (const row of group) {
        if (joined.reduce((sum, { text }) => sum + text.length, row.text.length) > MOST_CHARS) {
          await this.#hand(joined)
          joined = []
        }
        joined.push(row)
      }
      await this.#hand(joined)
    }
  }

  async #hand(rows: readonly WakeRow[]): Promise<void> {
    const { store, chat, turns, log } = this.#parts
    const [first] = rows
    if (!first) return
    try {
      // A crash may have come between the turn and its mark here.
      if (!(await turns.find(first.id))) {
        const agent = await this.choose(first.agent ?? undefined)
        await chat.accept({
          id: first.id,
          agentId: agent.id,
          door: 'hook',
          text: rows.map(({ text }) => text).join('\n\n'),
          labels: ['ExternalNetwork'],
        })
      }
      for (const { id } of rows) await store.ended(id, 'done')
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      for (const { id, attempts } of rows) {
        if (attempts + 1 < MOST_ATTEMPTS && error.code !== 'agent_not_found') await store.attempted(id)
        else {
          await store.ended(id, 'dead')
          log.warn('a wake from outside was given up', { wake: id, reason: error.message })
        }
      }
    }
  }
}
