import * as v from 'valibot'
import { RecentMap } from 'svc/channels'
import type { ChannelLink, InboundMessage } from 'svc/channels'
import type { SlackApi } from './api.ts'
import type { SlackConfig } from './config.ts'
import { decodeCommand, decodeEvent, decodePress } from './decode.ts'
import { Event, EventCallback, Interaction, SlashCommand } from './wire.ts'

const MAX_NAMES = 2000

/** Passes on what Slack sends, over Socket Mode or to the webhook. Settles when it is durable. */
export class SlackEvents {
  readonly #link: ChannelLink<SlackConfig>
  readonly #api: SlackApi
  readonly #botId: string
  readonly #names = new RecentMap<string, string>(MAX_NAMES)

  constructor(link: ChannelLink<SlackConfig>, api: SlackApi, botId: string) {
    this.#link = link
    this.#api = api
    this.#botId = botId
  }

  /** What comes of the Events API. */
  async event(payload: unknown): Promise<void> {
    const callback = v.safeParse(EventCallback, payload)
    const event = callback.success ? v.safeParse(Event, callback.output.event) : undefined
    if (!event?.success) return
    const teamId = callback.success ? (callback.output.team_id ?? undefined) : undefined
    const context = { botId: this.#botId, ignoreBots: this.#link.config.ignore_bots, teamId }
    await this.#receive(decodeEvent(event.output, context))
  }

  /** The press of a button. */
  async interaction(payload: unknown): Promise<void> {
    const press = v.safeParse(Interaction, payload)
    if (press.success) await this.#receive(decodePress(press.output))
  }

  async command(payload: unknown): Promise<void> {
    const command = v.safeParse(SlashCommand, payload)
    if (command.success) await this.#receive(decodeCommand(command.output, this.#link.now()))
  }

  async #receive(message: InboundMessage | undefined): Promise<void> {
    if (!message) return
    const { sender } = message
    const name = sender.name === sender.id && !sender.isBot ? await this.#nameOf(sender.id) : sender.name
    await this.#link.receive({ ...message, sender: { ...sender, name } })
  }

  /** Events have the id of a person only. */
  async #nameOf(id: string): Promise<string> {
    const known = this.#names.get(id)
    if (known !== undefined) return known
    let name = id
    try {
      name = await this.#api.userName(id)
    } catch (error) {
      // The name is for reading: without the scope users:read the id stands for it.
      this.#link.log.debug('Slack did not tell the name of a user', { error })
    }
    this.#names.set(id, name)
    return name
  }
}
