import { KeyedQueue, Refusal, SerialQueue } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Chat, Turns } from '../../chat/contract.ts'
import type { WakeRow } from '../schema.ts'
import type { AdmittedRequest } from './gate.ts'
import type { InboundStore } from './store.ts'

const BATCH_SIZE = 100
/** After so many heartbeats a wake is dropped: no agent accepts messages. */
const MAX_ATTEMPTS = 20
/** Joined wakes stay below the length limit of one message. */
const MAX_JOINED_CHARS = 32_000

export interface WakeHandlerDeps {
  readonly store: Pick<InboundStore, 'has' | 'commit' | 'wake' | 'waiting' | 'attempted' | 'ended'>
  readonly audit: Pick<Audit, 'entry'>
  readonly agents: Pick<Agents, 'list' | 'resolve'>
  readonly chat: Pick<Chat, 'accept'>
  readonly turns: Pick<Turns, 'find'>
  readonly log: { warn(message: string, facts?: object): void }
}
export interface WakeRequest {
  /** Name or id; the first agent when it is missing. */
  readonly agent: string | undefined
  readonly mode: WakeRow['mode']
  readonly text: string
}

/**
 * Hands wakes to agents. A wake is on disk before it is answered, and its turn has the id of the wake, so no turn is
 * made twice.
 */
export class WakeHandler {
  readonly #deps: WakeHandlerDeps
  readonly #flushes = new SerialQueue()
  /** One delivery of a request at a time: a second one, sent at the same moment, finds what the first has stored. */
  readonly #deliveries = new KeyedQueue()
  constructor(deps: WakeHandlerDeps) {
    this.#deps = deps
  }

  /** By name or id; the first agent without either. Throws `agent_not_found`. */
  async chooseAgent(nameOrId: string | undefined): Promise<Agent> {
    const { agents } = this.#deps
    if (nameOrId === undefined) {
      const [first] = await agents.list()
      if (!first) throw new Refusal('agent_not_found', 'There is no agent')
      return first
    }
    return agents.resolve(nameOrId)
  }

  /**
   * Stores a wake once, however often its request is delivered. Throws `agent_not_found`, which no later answer could
   * report.
   */
  receive({ effectId }: Pick<AdmittedRequest, 'effectId'>, wake: WakeRequest): Promise<'accepted' | 'duplicate'> {
    return this.#deliveries.run(effectId, async () => {
      if (await this.#deps.store.has(effectId)) return 'duplicate'
      if (wake.agent !== undefined) await this.chooseAgent(wake.agent)
      await this.#store({
        id: effectId,
        agent: wake.agent ?? null,
        mode: wake.mode,
        text: wake.text,
        created_at: new Date().toISOString(),
      })
      return 'accepted'
    })
  }

  async #store(row: Omit<WakeRow, 'attempts'>): Promise<void> {
    const { store, audit } = this.#deps
    await store.commit([
      store.wake(row),
      audit.entry({
        event: 'webhook_received',
        details: `wake ${row.id} (${row.mode}): ${row.text.length} characters`,
      }),
    ])
  }

  /** Delivers the wakes with mode `now`; on a heartbeat all others too. */
  flush(isHeartbeat: boolean): Promise<void> {
    return this.#flushes.run(() => this.#flush(isHeartbeat))
  }

  async #flush(isHeartbeat: boolean): Promise<void> {
    const rows = await this.#deps.store.waiting(BATCH_SIZE)
    for (const row of rows) if (row.mode === 'now' && (isHeartbeat || row.attempts === 0)) await this.#deliver([row])
    if (!isHeartbeat) return
    const later = rows.filter(({ mode }) => mode === 'next_heartbeat')
    for (const sameAgent of Map.groupBy(later, ({ agent }) => agent).values())
      for (const group of splitByLength(sameAgent)) await this.#deliver(group)
  }

  async #deliver(rows: readonly WakeRow[]): Promise<void> {
    const [first] = rows
    if (!first) return
    const { store, chat, turns } = this.#deps
    try {
      // A crash may have come between the turn and its mark here.
      if (!(await turns.find(first.id))) {
        const agent = await this.chooseAgent(first.agent ?? undefined)
        await chat.accept({
          id: first.id,
          agentId: agent.id,
          entryPoint: 'hook',
          text: rows.map(({ text }) => text).join('\n\n'),
          labels: ['ExternalNetwork'],
        })
      }
      for (const { id } of rows) await store.ended(id, 'done')
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      for (const row of rows) await this.#countFailure(row, error)
    }
  }

  async #countFailure({ id, attempts }: WakeRow, error: Refusal): Promise<void> {
    const { store, log } = this.#deps
    if (attempts + 1 < MAX_ATTEMPTS && error.code !== 'agent_not_found') return store.attempted(id)
    await store.ended(id, 'dead')
    log.warn('a wake from a webhook was given up', { wake: id, reason: error.message })
  }
}

/** Groups, in order, whose texts fit into one message. */
function splitByLength(rows: readonly WakeRow[]): readonly WakeRow[][] {
  const groups: WakeRow[][] = []
  let length = Infinity
  for (const row of rows) {
    length += row.text.length
    if (length > MAX_JOINED_CHARS) {
      groups.push([])
      length = row.text.length
    }
    groups.at(-1)?.push(row)
  }
  return groups
}
