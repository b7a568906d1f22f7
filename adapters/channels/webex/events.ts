import * as v from 'valibot'
import { omitUndefined, SerialQueue, UpstreamFailure } from 'svc/sdk'
import { isoTime, NameCache, readWebhookBody, SavedPosition, unlessRefused, verifySignature } from 'svc/channels'
import type { ChannelLink, InboundAttachment, InboundMessage, WebhookAnswer, WebhookRequest } from 'svc/channels'
import { PAGE } from './api.ts'
import type { WebexApi } from './api.ts'
import type { WebexConfig } from './config.ts'
import { decodeAction, decodeMessage, timeOf } from './decode.ts'
import { ActiveRoom, Message, Notification } from './wire.ts'
import type { Person } from './wire.ts'

/** Notifications of messages that are older are repeated ones. */
const MAX_AGE_MS = 86_400_000
/** Pages that are read of one space. What is older was written while the daemon was away for very long. */
const MAX_PAGES = 10
const MAX_FILES = 20
/** Messages of spaces can come in another order than their times say: what was read is dropped as a duplicate. */
const OVERLAP_MS = 10_000

/** Passes on messages: those that Webex tells of, and those that were written while nobody listened. */
export class WebexEvents {
  readonly #link: ChannelLink<WebexConfig>
  readonly #api: WebexApi
  readonly #me: Person
  readonly #position: SavedPosition
  readonly #names: NameCache
  readonly #work = new SerialQueue()
  readonly #failed = Promise.withResolvers<unknown>()
  #last = ''
  /** What was written up to this time is history. */
  #start = ''
  #hasFailed = false
  /** What was missed is not read yet. */
  #isBehind = true

  constructor(link: ChannelLink<WebexConfig>, api: WebexApi, me: Person) {
    this.#link = link
    this.#api = api
    this.#me = me
    this.#position = new SavedPosition(link, 'last')
    this.#names = new NameCache(link, 'webex')
  }

  /**
   * Settles with what went wrong with a notification. Webex does not repeat it: the next connection reads the message
   * from where this one came to.
   */
  get failed(): Promise<unknown> {
    return this.#failed.promise
  }
  flush(): Promise<void> {
    return this.#position.flush()
  }

  async answer(request: WebhookRequest): Promise<WebhookAnswer> {
    if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
    const { webhook_secret: secret } = this.#link.config
    verifySignature(request.body, request.header('x-spark-signature'), { secret, hash: 'sha1' })
    const parsed = v.safeParse(Notification, readWebhookBody(request))
    if (!parsed.success || parsed.output.createdBy !== this.#me.id) return { status: 200 }
    const { resource, event, data } = parsed.output
    if (data.personId === this.#me.id) return { status: 200 }
    try {
      await this.#work.run(() => this.#receiveEvent(resource, event, data.id))
    } catch (error) {
      this.#hasFailed = true
      this.#failed.resolve(error)
      throw error
    }
    return { status: 200 }
  }

  /** Reads how far the connection before this one came. The first time all that is there is history. */
  async begin(): Promise<void> {
    const saved = await this.#position.read()
    if (saved !== undefined) {
      const [last = '', start = last] = saved.split(' ')
      this.#last = last
      this.#start = start
      return
    }
    const times = (await this.#rooms()).map(({ lastActivity }) => timeOf(lastActivity))
    this.#start = this.#last = times.toSorted().at(-1) ?? isoTime(this.#link.now())
    await this.#position.write(this.#saved())
  }

  /** Reads what was written since then, which takes as long as there are spaces. What is told meanwhile comes between. */
  async catchUp(signal: AbortSignal): Promise<void> {
    const overlapping = isoTime(Date.parse(this.#last) - OVERLAP_MS)
    const since = overlapping > this.#start ? overlapping : this.#start
    const missed: Message[] = []
    for (const { id, type, lastActivity } of await this.#rooms()) {
      if (timeOf(lastActivity) > since) missed.push(...(await this.#missedIn(id, type, since, signal)))
      this.#link.heard()
    }
    const inOrder = missed.toSorted((one, other) => Date.parse(one.created) - Date.parse(other.created))
    for (const message of inOrder) {
      signal.throwIfAborted()
      await this.#work.run(() => this.#receive(message, false))
      this.#advance(timeOf(message.created))
    }
    this.#isBehind = false
  }

  async #rooms() {
    return (await this.#api.rooms()).flatMap((raw) => (v.is(ActiveRoom, raw) ? [raw] : []))
  }

  async #missedIn(roomId: string, type: string, since: string, signal: AbortSignal): Promise<readonly Message[]> {
    const onlyMentions = this.#me.type === 'bot' && type !== 'direct'
    const missed: Message[] = []
    let before: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const items = await unlessRefused(this.#api.messages(roomId, before, onlyMentions, signal))
      // The bot has left meanwhile.
      if (!items) return missed
      const messages = items.flatMap((raw) => {
        const parsed = v.safeParse(Message, raw)
        return parsed.success ? [parsed.output] : []
      })
      missed.push(...messages.filter(({ created }) => timeOf(created) > since))
      const last = messages.at(-1)
      if (items.length < PAGE || !last || last.id === before || timeOf(last.created) <= since) return missed
      before = last.id
    }
    this.#link.log.warn('There were too many messages on Webex meanwhile: older ones were left out', { roomId })
    return missed
  }

  async #receiveEvent(resource: string, event: string, id: string): Promise<void> {
    if (resource === 'attachmentActions') return this.#receiveAction(id)
    if (resource !== 'messages' || (event !== 'created' && event !== 'updated')) return
    const message = await unlessRefused(this.#api.message(id))
    if (!message) return
    const changed = Date.parse(timeOf((event === 'updated' && message.updated) || message.created))
    if (this.#link.now() - changed > MAX_AGE_MS)
      return this.#link.log.warn('Webex told of a message of more than a day ago: it was left out')
    await this.#receive(message, event === 'updated')
  }

  async #receiveAction(id: string): Promise<void> {
    const action = await unlessRefused(this.#api.action(id))
    if (!action) return
    const room = await unlessRefused(this.#api.room(action.roomId))
    if (!room) return
    const person = await unlessRefused(this.#api.person(action.personId))
    const message = decodeAction(action, person, room.type === 'direct')
    if (message) await this.#link.receive(await this.#named(message))
  }

  async #receive(message: Message, isEdit: boolean): Promise<void> {
    const decoded = decodeMessage(message, this.#me.id, isEdit)
    if (decoded) {
      const attachments = await this.#describe(message.files ?? [])
      await this.#link.receive({ ...(await this.#named(decoded)), attachments })
    }
    // Not while older ones are still to come.
    if (!isEdit && !this.#isBehind) this.#advance(timeOf(message.created))
  }

  #advance(created: string): void {
    if (this.#hasFailed || created <= this.#last) return
    this.#last = created
    this.#position.set(this.#saved())
  }

  #saved(): string {
    return `${this.#last} ${this.#start}`
  }

  async #named(message: InboundMessage): Promise<InboundMessage> {
    const { chat, sender } = message
    const known = await this.#names.find(sender.id, async () => (await this.#api.person(sender.id)).displayName ?? '')
    const title =
      chat.kind === 'group'
        ? await this.#names.find(chat.id, async () => (await this.#api.room(chat.id)).title ?? '')
        : undefined
    const name = known === sender.id ? sender.name : known
    return { ...message, chat: omitUndefined({ ...chat, title }), sender: { ...sender, name } }
  }

  /** A file that Webex does not describe, as while it is searched for viruses, has no name yet. */
  async #describe(files: readonly string[]): Promise<readonly InboundAttachment[]> {
    const described: InboundAttachment[] = []
    for (const url of files.slice(0, MAX_FILES))
      try {
        described.push(await this.#api.describeFile(url))
      } catch (error) {
        if (!(error instanceof UpstreamFailure)) throw error
        this.#link.log.debug('Webex did not describe a file', { error })
        described.push({ kind: 'file', name: 'file', mime: 'application/octet-stream', reference: { url } })
      }
    return described
  }
}
