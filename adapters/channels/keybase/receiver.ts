import * as v from 'valibot'
import { readJson, SerialQueue } from 'svc/sdk'
import { RecentMap, SavedPosition } from 'svc/channels'
import type { Link } from './config.ts'
import { decodeMessage, teamOf } from './decode.ts'
import { keybaseFailure } from './errors.ts'
import type { Keybase } from './program.ts'
import { Conversations, Message, Messages, Notification } from './wire.ts'

const MAX_LINE = 4_194_304
const MAX_WAITING_LINES = 1000
const MAX_OWN = 1000
/** What is older was written while the daemon was away for very long, and is left out. */
const MAX_CONVERSATIONS = 100
const MAX_MESSAGES = 100

/** Passes on messages: the lines of `api-listen`, and those that were written while it did not run. */
export class KeybaseReceiver {
  /** Rejects with the first failure. */
  readonly failed = Promise.withResolvers<never>()
  readonly #link: Link
  readonly #keybase: Keybase
  readonly #position: SavedPosition
  readonly #own = new RecentMap<string, true>(MAX_OWN)
  readonly #work = new SerialQueue()
  readonly #utf8 = new TextDecoder()
  #rest = ''
  #waiting = 0
  #lastMs = 0
  #hasFailed = false

  constructor(link: Link, keybase: Keybase) {
    this.#link = link
    this.#keybase = keybase
    this.#position = new SavedPosition(link, 'last')
    this.failed.promise.catch(() => undefined)
  }

  /** A message that the bot sent. */
  noteOwn(id: string): void {
    this.#own.set(id, true)
  }

  /** Reads what was missed. Lines that come meanwhile wait. The first time there is nothing to read. */
  async catchUp(): Promise<void> {
    await this.#work.run(() => this.#readMissed())
  }

  /** Takes a piece of what `api-listen` prints. */
  feed(bytes: Uint8Array): void {
    this.#link.heard()
    const lines = (this.#rest + this.#utf8.decode(bytes, { stream: true })).split('\n')
    this.#rest = lines.pop() ?? ''
    const isTooMuch = this.#rest.length > MAX_LINE || this.#waiting + lines.length > MAX_WAITING_LINES
    // The next connection reads what is left out here.
    if (isTooMuch) return this.#fail(keybaseFailure('messages came faster than they are taken', 'overloaded', 'later'))
    for (const line of lines) if (line.trim() !== '') this.#add(line)
  }

  /** Settles when nothing more is passed on. */
  async end(): Promise<void> {
    this.#hasFailed = true
    await this.#work.idle()
    await this.#position.flush()
  }

  #add(line: string): void {
    this.#waiting++
    this.#work
      .run(async () => {
        if (!this.#hasFailed) await this.#receiveLine(line)
      })
      .catch((error: unknown) => this.#fail(error))
      .finally(() => this.#waiting--)
  }

  #fail(error: unknown): void {
    this.#hasFailed = true
    this.failed.reject(error)
  }

  async #readMissed(): Promise<void> {
    const saved = await this.#position.read()
    if (saved === undefined) {
      this.#lastMs = this.#link.now()
      return this.#position.write(String(this.#lastMs))
    }
    this.#lastMs = Number(saved)
    const sinceMs = this.#lastMs
    const { conversations } = await this.#keybase.call('list', {}, Conversations)
    const active = (conversations ?? []).filter(({ active_at_ms: ms }) => ms >= sinceMs).slice(0, MAX_CONVERSATIONS)
    const missed: Message[] = []
    for (const { id } of active) missed.push(...(await this.#readSince(id, sinceMs)))
    for (const message of missed.toSorted((one, other) => one.sent_at_ms - other.sent_at_ms))
      await this.#receive(message)
  }

  async #readSince(conversation: string, sinceMs: number): Promise<readonly Message[]> {
    const options = { conversation_id: conversation, peek: true, pagination: { num: MAX_MESSAGES } }
    const { messages } = await this.#keybase.call('read', options, Messages)
    return (messages ?? []).flatMap(({ msg }) => {
      const parsed = v.safeParse(Message, msg)
      return parsed.success && parsed.output.sent_at_ms >= sinceMs ? [parsed.output] : []
    })
  }

  async #receiveLine(line: string): Promise<void> {
    const notification = v.safeParse(Notification, parse(line))
    if (!notification.success) return this.#link.log.warn('Keybase printed a line that cannot be read')
    const { type, msg, error } = notification.output
    if (type !== 'chat') return
    if (error) return this.#link.log.warn(`Keybase could not read a message: ${error.slice(0, 200)}`)
    const message = v.safeParse(Message, msg)
    if (message.success) return this.#receive(message.output)
    this.#link.log.warn('Keybase printed a message in a form that cannot be read')
  }

  async #receive(message: Message): Promise<void> {
    const { teams, username } = this.#link.config
    const team = teamOf(message)
    const isRead =
      message.channel.topic_type === 'chat' && (team === undefined || teams.length === 0 || teams.includes(team))
    const decoded = isRead ? decodeMessage(message, { username, isOwn: (id) => this.#own.has(id) }) : undefined
    if (decoded) await this.#link.receive(decoded)
    if (message.sent_at_ms <= this.#lastMs) return
    this.#lastMs = message.sent_at_ms
    this.#position.set(String(this.#lastMs))
  }
}

function parse(line: string): unknown {
  try {
    return readJson(line)
  } catch {
    return undefined /* logged by the caller */
  }
}
