import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { RecentMap, unlessRefused } from 'svc/channels'
import type { ChannelLink, InboundMessage } from 'svc/channels'
import type { PumbleApi } from './api.ts'
import type { PumbleConfig } from './config.ts'
import { decodeCommand, decodeMessage, decodePress, isOfPerson } from './decode.ts'
import type { Around } from './decode.ts'
import { Envelope, Interaction, Posted, SlashCommand } from './wire.ts'
import type { Channel, Identity, User } from './wire.ts'

const MAX_KNOWN = 2000
/** Names change, and people join direct messages. */
const KEEP_MS = 3_600_000
const EVENTS: ReadonlySet<string> = new Set(['PUMBLE_EVENT', 'APP_EVENT'])

interface Known<T> {
  readonly value: T | undefined
  readonly at: number
}

/** Passes on what Pumble sends. Settles when it is durable. */
export class PumbleEvents {
  readonly #link: ChannelLink<PumbleConfig>
  readonly #api: PumbleApi
  readonly #bot: Identity
  readonly #channels = new RecentMap<string, Known<Channel>>(MAX_KNOWN)
  readonly #users = new RecentMap<string, Known<User>>(MAX_KNOWN)

  constructor(link: ChannelLink<PumbleConfig>, api: PumbleApi, bot: Identity) {
    this.#link = link
    this.#api = api
    this.#bot = bot
  }

  async receive(raw: unknown): Promise<void> {
    const envelope = v.safeParse(Envelope, raw)
    // One app serves every workspace that authorized it.
    if (!envelope.success || envelope.output.workspaceId !== this.#bot.workspaceId) return
    const { messageType, eventType, body } = envelope.output
    const message = EVENTS.has(messageType)
      ? await this.#readEvent(eventType ?? '', body ?? '')
      : await this.#readTrigger(raw)
    if (message) await this.#link.receive(message)
  }

  async #readEvent(type: string, body: string): Promise<InboundMessage | undefined> {
    if (type !== 'NEW_MESSAGE' && type !== 'UPDATED_MESSAGE') return undefined
    const posted = v.safeParse(Posted, parsed(body))
    if (!posted.success) {
      this.#link.log.warn('Pumble sent a message in a form that cannot be read')
      return undefined
    }
    const { mId: id, cId: channel, aId: author, f: files, e: isEdited } = posted.output
    const isEdit = type === 'UPDATED_MESSAGE'
    // A message is updated by a preview and by a reaction too.
    if (!isOfPerson(posted.output, this.#bot.workspaceUserId) || (isEdit && isEdited !== true)) return undefined
    const around = await this.#lookAround(channel, author)
    // The files of an event are in another form than those of a message.
    const known = (files ?? []).length > 0 ? await unlessRefused(this.#api.message(channel, id)) : undefined
    return decodeMessage(posted.output, { ...around, files: known?.files ?? [] }, isEdit)
  }

  async #readTrigger(raw: unknown): Promise<InboundMessage | undefined> {
    const command = v.safeParse(SlashCommand, raw)
    if (command.success) {
      const { channelId, userId } = command.output
      return decodeCommand(command.output, await this.#lookAround(channelId, userId), this.#link.now())
    }
    const press = v.safeParse(Interaction, raw)
    if (!press.success) return undefined
    const { channelId, userId } = press.output
    return decodePress(press.output, await this.#lookAround(channelId, userId), this.#link.now())
  }

  async #lookAround(channelId: string, userId: string): Promise<Around> {
    const channel = await this.#lookUp(this.#channels, channelId, () => this.#api.channel(channelId))
    const user = await this.#lookUp(this.#users, userId, () => this.#api.user(userId))
    return { botId: this.#bot.workspaceUserId, channel, user }
  }

  /**
   * What the bot may not read stays unknown. Pumble does not send an event again, so what fails for the moment is as it
   * was, and fails the event only where nothing is known of it.
   */
  async #lookUp<T>(known: RecentMap<string, Known<T>>, id: string, read: () => Promise<T>): Promise<T | undefined> {
    const entry = known.get(id)
    const now = this.#link.now()
    if (entry && now - entry.at < KEEP_MS) return entry.value
    try {
      const value = await unlessRefused(read())
      known.set(id, { value, at: now })
      return value
    } catch (error) {
      if (!entry) throw error
      this.#link.log.debug('Pumble does not tell about a channel or a user for the moment', { error })
      return entry.value
    }
  }
}

function parsed(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
