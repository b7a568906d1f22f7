import { sleep } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { ServerSentEvent } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { AuditFeed } from '../audit/contract.ts'
import { fromAudit } from './from-audit.ts'
import type { CommsEvent } from './schema.ts'
import type { CommsStore } from './store.ts'

const PAGE = 500
/** Entries of the trail that are read when it is read for the first time. */
const FIRST_ENTRIES = 10_000
/** Another daemon on the database adds events too. */
const POLL_MS = 500

export interface EventsDeps {
  readonly store: CommsStore
  readonly feed: AuditFeed
  readonly agents: Pick<Agents, 'find'>
  readonly settings: { readonly max_events: number; readonly max_streams: number }
  readonly clock: Clock
}

/**
 * Events of agents: their messages, which are written together with the turns they begin, and what the audit trail
 * says of agents and tasks. The trail is read when somebody asks, so that nothing is done while nobody does.
 */
export class CommsEvents {
  readonly #deps: EventsDeps
  readonly #reading = new SerialQueue()
  readonly #streams = new Set<PromiseWithResolvers<void>>()
  constructor(deps: EventsDeps) {
    this.#deps = deps
  }

  /** An event of this process is on disk. */
  readonly added = (): void => {
    for (const stream of this.#streams) stream.resolve()
  }

  async recent(limit: number): Promise<readonly CommsEvent[]> {
    await this.readTrail()
    return this.#deps.store.recent(limit)
  }

  /** Events that are added from now on. Throws `rate_limit` when there are too many readers. */
  async follow(signal: AbortSignal): Promise<AsyncIterable<ServerSentEvent>> {
    const { max_streams: max } = this.#deps.settings
    if (this.#streams.size >= max)
      throw new Refusal('rate_limit', `${max} readers follow the events already (plugins.comms.max_streams)`, {
        retryAfterSecs: 10,
      })
    await this.readTrail()
    return this.#follow(await this.#deps.store.newest(), signal)
  }
  async *#follow(after: number, signal: AbortSignal): AsyncGenerator<ServerSentEvent> {
    const { store, feed } = this.#deps
    let changed = Promise.withResolvers<void>()
    this.#streams.add(changed)
    const stop = feed.onAppended(() => changed.resolve())
    try {
      let last = after
      while (!signal.aborted) {
        await this.#untilChange(changed.promise, signal)
        this.#streams.delete(changed)
        changed = Promise.withResolvers()
        this.#streams.add(changed)
        await this.readTrail()
        for (const { sequence, event } of await store.after(last, PAGE)) {
          yield { data: JSON.stringify(event) }
          last = sequence
        }
      }
    } finally {
      stop()
      this.#streams.delete(changed)
    }
  }
  /** Also settles after a while, and when the reader leaves. */
  async #untilChange(changed: Promise<void>, signal: AbortSignal): Promise<void> {
    const pause = new AbortController()
    const both = AbortSignal.any([signal, pause.signal])
    await Promise.race([changed, sleep(this.#deps.clock, POLL_MS, both).catch(() => undefined)])
    pause.abort()
  }

  /** Adds the events of the entries since the last time. */
  readTrail(): Promise<void> {
    return this.#reading.run(async () => {
      const { store, feed } = this.#deps
      let position = await store.position()
      position ??= Math.max(0, (await feed.newest()) - FIRST_ENTRIES)
      for (;;) {
        const entries = await feed.following(position, PAGE)
        const last = entries.at(-1)
        if (!last) return
        const found = entries.map(fromAudit).filter((event) => event !== undefined)
        const named = await Promise.all(found.map((event) => this.#named(event)))
        await store.commit([...named.map((event) => store.insert(event, () => {})), store.advance(last.id)])
        position = last.id
        if (entries.length < PAGE) return
      }
    })
  }
  async deleteOld(): Promise<void> {
    const { store, settings } = this.#deps
    await this.readTrail()
    await store.commit([store.deleteOld(settings.max_events)])
  }

  /** With the names of agents that are still there. */
  async #named(event: CommsEvent): Promise<CommsEvent> {
    const nameOf = async (id: string, known: string): Promise<string> =>
      known === '' && id !== '' ? ((await this.#deps.agents.find(id))?.name ?? id) : known
    return {
      ...event,
      source_name: await nameOf(event.source_id, event.source_name),
      target_name: await nameOf(event.target_id, event.target_name),
    }
  }
}
