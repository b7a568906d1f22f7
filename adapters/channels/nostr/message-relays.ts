import { verifyEvent } from 'nostr-tools/pure'
import { RecentMap } from 'svc/channels'
import { UpstreamFailure } from 'svc/sdk'
import type { ChannelLink } from 'svc/channels'
import type { NostrConfig } from './config.ts'
import type { Identity } from './identity.ts'
import type { Relay } from './relay.ts'
import { KIND, tagsOf } from './wire.ts'
import type { Event } from './wire.ts'

const MAX_PEOPLE = 1000
const KEEP_MS = 3_600_000
/** As many as NIP-17 advises people to list. */
const MAX_LISTED = 3

/** The relays on which people read their direct messages (NIP-17: kind 10050). */
export class MessageRelays {
  readonly #link: ChannelLink<NostrConfig>
  readonly #known = new RecentMap<string, { readonly urls: readonly string[]; readonly at: number }>(MAX_PEOPLE)

  constructor(link: ChannelLink<NostrConfig>) {
    this.#link = link
  }

  /** Where somebody reads; the relays of the bot where nothing is listed. */
  async of(person: string, relays: readonly Relay[]): Promise<readonly string[]> {
    const known = this.#known.get(person)
    if (known && this.#link.now() - known.at < KEEP_MS) return known.urls
    const events = await this.#ask(person, relays)
    const newest = events.toSorted((one, other) => other.created_at - one.created_at)[0]
    const own = this.#link.config.relays
    const listed = newest ? usableRelays(tagsOf(newest, 'relay'), own) : []
    const urls = listed.length > 0 ? listed : own
    this.#known.set(person, { urls, at: this.#link.now() })
    return urls
  }

  /** Publishes where the bot reads, at each relay whose list lacks some of it. */
  async announce(identity: Identity, relays: readonly Relay[]): Promise<void> {
    const { relays: urls } = this.#link.config
    const list = identity.sign({
      kind: KIND.messageRelays,
      created_at: Math.floor(this.#link.now() / 1000),
      tags: urls.map((url) => ['relay', url]),
      content: '',
    })
    for (const relay of relays)
      try {
        const [known] = await this.#ask(identity.publicKey, [relay])
        const listed = known ? tagsOf(known, 'relay').map(normalized) : []
        if (!urls.every((url) => listed.includes(normalized(url)))) await relay.publish(list)
      } catch (error) {
        // Who knows the relays of the bot can write to it all the same.
        this.#link.log.warn('A relay of Nostr did not take the list of relays', { relay: relay.host, error })
      }
  }

  /** Throws when no relay answers: what is written to the wrong relays, nobody reads. */
  async #ask(person: string, relays: readonly Relay[]): Promise<readonly Event[]> {
    const filter = { kinds: [KIND.messageRelays], authors: [person], limit: 1 }
    const answers = await Promise.allSettled(relays.map((relay) => relay.query(filter)))
    const failed = answers.find(({ status }) => status === 'rejected')
    if (!answers.some(({ status }) => status === 'fulfilled'))
      throw new UpstreamFailure('nostr', `no relay tells where people read: ${reasonOf(failed)}`, {
        reason: 'network',
        retry: 'later',
      })
    return answers
      .flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
      .filter((event) => event.pubkey === person && event.kind === KIND.messageRelays && verifyEvent({ ...event }))
  }
}

/** Anybody lists any address: only those that are encrypted, or are the operator's choice. */
export function usableRelays(listed: readonly string[], own: readonly string[]): readonly string[] {
  const known = new Map(own.map((url) => [normalized(url), url]))
  const usable = listed.flatMap((url) => known.get(normalized(url)) ?? (isPublic(url) ? [url] : []))
  return [...new Set(usable)].slice(0, MAX_LISTED)
}

function isPublic(url: string): boolean {
  if (url.length > 512 || !URL.canParse(url)) return false
  const { protocol, port, username, password } = new URL(url)
  return protocol === 'wss:' && port === '' && username === '' && password === ''
}

function normalized(url: string): string {
  return URL.canParse(url) ? new URL(url).href.replace(/\/$/, '') : ''
}

function reasonOf(answer: PromiseSettledResult<unknown> | undefined): string {
  if (answer?.status !== 'rejected') return 'none is connected'
  return answer.reason instanceof Error ? answer.reason.message : String(answer.reason)
}
