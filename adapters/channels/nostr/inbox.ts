import { setImmediate } from 'node:timers/promises'
import { RecentMap } from 'svc/channels'
import type { ChannelLink, InboundMessage } from 'svc/channels'
import type { NostrConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import { openEnvelope } from './envelope.ts'
import type { Identity } from './identity.ts'
import type { Event, Rumor } from './wire.ts'

/** Envelopes that were dealt with: each relay has a copy, and each new connection reads some days. */
const MAX_SEEN = 20_000
const MAX_OWN = 2000

/** Opens envelopes and passes on the messages in them. */
export class Inbox {
  readonly #link: ChannelLink<NostrConfig>
  readonly #identity: Identity
  readonly #seen = new RecentMap<string, true>(MAX_SEEN)
  readonly #own = new RecentMap<string, true>(MAX_OWN)

  constructor(link: ChannelLink<NostrConfig>, identity: Identity) {
    this.#link = link
    this.#identity = identity
  }

  /** The bot wrote the message with this id. */
  addOwn(id: string): void {
    this.#own.set(id, true)
  }

  /** Passes on what comes while the bot listens. */
  async receive(event: Event): Promise<void> {
    const message = (await this.open(event))?.message
    if (message) await this.#link.receive(message)
    this.#seen.set(event.id, true)
  }

  /** Passes on what was stored, in the order in which it was written. What was written before `start` is history. */
  async receiveStored(opened: readonly OpenedMessage[], start: number): Promise<void> {
    const inOrder = opened.toSorted((one, other) => one.writtenAt - other.writtenAt)
    for (const { eventId, writtenAt, message } of inOrder) {
      if (writtenAt >= start) await this.#link.receive(message)
      this.#seen.set(eventId, true)
    }
  }

  /** The message in an envelope, unless it was dealt with. */
  async open(event: Event): Promise<OpenedMessage | undefined> {
    if (this.#seen.has(event.id)) return undefined
    // Anybody may send envelopes, and to look into one takes milliseconds: all else goes on in between.
    await setImmediate()
    const rumor = this.#rumorOf(event)
    if (!rumor) return undefined
    if (rumor.pubkey === this.#identity.publicKey) this.addOwn(rumor.id)
    const message = decodeMessage(rumor, { identity: this.#identity, isOwn: (id) => this.#own.has(id) })
    return message && { eventId: event.id, writtenAt: rumor.created_at, message }
  }

  #rumorOf(event: Event): Rumor | undefined {
    try {
      return openEnvelope(event, this.#identity)
    } catch (error) {
      // Everybody can send these: they are no fault of the relay, and must not hold up the others.
      this.#link.log.debug('An event of Nostr cannot be opened', {
        event: event.id,
        error: String(error).slice(0, 300),
      })
      return undefined
    }
  }
}

export interface OpenedMessage {
  readonly eventId: string
  /** Seconds, as the author says. Those of the envelope are blurred. */
  readonly writtenAt: number
  readonly message: InboundMessage
}
