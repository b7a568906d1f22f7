import { verifyEvent } from 'nostr-tools/pure'
import { UpstreamFailure } from 'svc/sdk'
import { PartialSends, RecentMap } from 'svc/channels'
import type { ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type { NostrConfig } from './config.ts'
import { encodeMessage, recipientsOf } from './encode.ts'
import { sealLegacy, wrapFor } from './envelope.ts'
import type { Identity } from './identity.ts'
import type { Inbox } from './inbox.ts'
import type { RelayListener } from './listener.ts'
import { MessageRelays } from './message-relays.ts'
import { Relay } from './relay.ts'
import { SendTimes } from './send-times.ts'
import { KIND } from './wire.ts'
import type { Event, Rumor } from './wire.ts'

const MAX_PENDING = 1000

export interface SenderDeps {
  readonly link: ChannelLink<NostrConfig>
  readonly identity: Identity
  readonly listener: RelayListener
  readonly inbox: Inbox
}

/** Sends messages to the relays on which their recipients read. */
export class NostrSender {
  readonly #deps: SenderDeps
  readonly #places: MessageRelays
  readonly #times: SendTimes
  readonly #partial = new PartialSends()
  /** Events of NIP-04 that no relay has taken: another attempt has to send the same. */
  readonly #legacy = new RecentMap<string, Event>(MAX_PENDING)

  constructor(deps: SenderDeps) {
    this.#deps = deps
    this.#places = new MessageRelays(deps.link)
    this.#times = new SendTimes(deps.link)
  }

  announce(): Promise<void> {
    return this.#places.announce(this.#deps.identity, this.#deps.listener.relays)
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const { link, identity } = this.#deps
    const to = recipientsOf(message.to.chatId)
    const protocol = message.to.replyContext?.['protocol'] ?? link.config.protocol
    const isLegacy = protocol === 'nip04' && to.length === 1
    const createdAt = await this.#times.timeOf(message)
    const rumor = encodeMessage(message, { author: identity.publicKey, to, createdAt, isLegacy })
    return isLegacy ? this.#sendLegacy(message, rumor, to[0] ?? '') : this.#sendWrapped(message, rumor, to)
  }

  async #sendWrapped(message: OutboundMessage, rumor: Rumor, to: readonly string[]): Promise<SentMessage> {
    const { identity, inbox } = this.#deps
    const sent = { id: rumor.id }
    inbox.addOwn(rumor.id)
    const steps = to.map((reader) => async () => {
      await this.#publish(wrapFor(rumor, reader, identity), await this.#placesOf(reader))
      return sent
    })
    await this.#partial.send(message.id, steps)
    await this.#keepCopy(rumor)
    return sent
  }

  /** For the other apps of the account, as NIP-17 asks for. */
  async #keepCopy(rumor: Rumor): Promise<void> {
    const { link, identity } = this.#deps
    try {
      await this.#publish(wrapFor(rumor, identity.publicKey, identity), link.config.relays)
    } catch (error) {
      link.log.warn('A copy of a message was not kept on the relays of the bot', { error })
    }
  }

  async #sendLegacy(message: OutboundMessage, rumor: Rumor, reader: string): Promise<SentMessage> {
    const { identity, inbox } = this.#deps
    const earlier = message.mayBeSent ? await this.#findLegacy(rumor, reader) : undefined
    if (earlier !== undefined) return { id: earlier, wasSentBefore: true }
    const event = this.#legacy.get(message.id) ?? sealLegacy(rumor, reader, identity)
    this.#legacy.set(message.id, event)
    inbox.addOwn(event.id)
    await this.#publish(event, await this.#placesOf(reader))
    return { id: event.id }
  }

  /** In a chat no two messages have the same time, so the time tells which one it is. */
  async #findLegacy({ created_at: time }: Rumor, reader: string): Promise<string | undefined> {
    const { identity, listener } = this.#deps
    const kinds = [KIND.legacyMessage]
    const filter = { kinds, authors: [identity.publicKey], '#p': [reader], since: time, until: time, limit: 1 }
    const found = await Promise.all(listener.relays.map((relay) => relay.query(filter)))
    // A relay may send something else: then the message would be taken for sent, and never be.
    return found.flat().find((event) => isFrom(event, identity.publicKey, time))?.id
  }

  #placesOf(reader: string): Promise<readonly string[]> {
    return this.#places.of(reader, this.#deps.listener.relays)
  }

  /** Settles when one relay has it, and all have answered. */
  async #publish(event: Event, urls: readonly string[]): Promise<void> {
    const results = await Promise.allSettled(urls.map((url) => this.#publishAt(event, url)))
    if (results.some(({ status }) => status === 'fulfilled')) return
    this.#deps.link.signal.throwIfAborted()
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    throw failures.find((failure) => failure instanceof UpstreamFailure && failure.retry === 'later') ?? failures[0]
  }

  async #publishAt(event: Event, url: string): Promise<void> {
    const { link, identity, listener } = this.#deps
    const open = listener.relay(url)
    if (open) return open.publish(event)
    const relay = await Relay.open(link, identity, url, link.config.relays.includes(url))
    try {
      await relay.publish(event)
    } finally {
      await relay.close()
    }
  }
}

function isFrom(event: Event, author: string, time: number): boolean {
  return event.pubkey === author && event.created_at === time && verifyEvent({ ...event })
}
