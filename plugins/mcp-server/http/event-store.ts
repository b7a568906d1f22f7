import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server'

export interface EventLimits {
  readonly max_events: number
  readonly max_event_bytes: number
  readonly event_secs: number
}
interface StoredEvent {
  readonly id: number
  readonly streamId: string
  readonly message: JSONRPCMessage
  readonly bytes: number
  readonly at: number
}

/**
 * The newest messages of one session, for a client that lost its connection. Bounded in number, bytes and age; a client
 * that asks for what is gone is told so, and begins a new session.
 */
export class BoundedEventStore implements EventStore {
  readonly #limits: EventLimits
  readonly #now: () => number
  readonly #sizeOf: (message: JSONRPCMessage) => number
  #events: StoredEvent[] = []
  #bytes = 0
  #nextId = 1

  constructor(limits: EventLimits, now: () => number, sizeOf: (message: JSONRPCMessage) => number) {
    this.#limits = limits
    this.#now = now
    this.#sizeOf = sizeOf
  }
  get size(): number {
    return this.#events.length
  }

  storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const id = this.#nextId++
    const bytes = this.#sizeOf(message)
    this.#events.push({ id, streamId, message, bytes, at: this.#now() })
    this.#bytes += bytes
    this.#trim()
    return Promise.resolve(String(id))
  }
  getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return Promise.resolve(this.#events[this.#indexOf(eventId)]?.streamId)
  }
  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const at = this.#indexOf(lastEventId)
    const last = this.#events[at]
    if (!last) throw new Error(`the event ${lastEventId} is not kept any more`)
    const later = this.#events.slice(at + 1).filter(({ streamId }) => streamId === last.streamId)
    // What only opens a stream has no message.
    for (const { id, message } of later) if (Object.keys(message).length > 0) await send(String(id), message)
    return last.streamId
  }

  #indexOf(eventId: string): number {
    this.#trim()
    const first = this.#events[0]
    return first && /^\d{1,15}$/.test(eventId) ? Number(eventId) - first.id : -1
  }
  #trim(): void {
    const { max_events: maxEvents, max_event_bytes: maxBytes, event_secs: secs } = this.#limits
    const oldest = this.#now() - secs * 1000
    let gone = 0
    let bytes = this.#bytes
    for (const event of this.#events) {
      if (this.#events.length - gone <= maxEvents && bytes <= maxBytes && event.at >= oldest) break
      bytes -= event.bytes
      gone++
    }
    if (gone === 0) return
    this.#events = this.#events.slice(gone)
    this.#bytes = bytes
  }
}
