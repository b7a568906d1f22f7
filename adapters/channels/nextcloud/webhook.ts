import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { readWebhookBody, RecentMap, trimSlashes, verifySecret, verifySignature } from 'svc/channels'
import type { ChannelLink, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { NextcloudConfig } from './config.ts'
import { decodeActivity } from './decode.ts'
import { Activity, Created } from './wire.ts'

/** Requests have no time: one that comes again is known by its random text, and later by the id of its message. */
const MAX_RANDOMS = 10_000
const MIN_RANDOM = 32

/** The requests of the server to a bot. */
export class NextcloudWebhook {
  readonly #link: ChannelLink<NextcloudConfig>
  readonly #randoms = new RecentMap<string, true>(MAX_RANDOMS)

  constructor(link: ChannelLink<NextcloudConfig>) {
    this.#link = link
  }

  async answer(request: WebhookRequest): Promise<WebhookAnswer> {
    const random = this.#verify(request)
    const raw = readWebhookBody(request)
    const activity = v.safeParse(Activity, raw)
    if (!activity.success) throw new Refusal('invalid_request', 'The body is no activity')
    // Others tell of reactions, notices, and that the bot was switched on or off.
    if (activity.output.type === 'Create') await this.#receive(raw)
    this.#randoms.set(random, true)
    return { status: 200 }
  }

  /** Source: https://nextcloud-talk.readthedocs.io/en/latest/bots/#signing-and-verifying-requests */
  #verify(request: WebhookRequest): string {
    const { token: secret, base_url: base } = this.#link.config
    const random = request.header('x-nextcloud-talk-random') ?? ''
    const signed = Buffer.concat([Buffer.from(random), request.body])
    verifySignature(signed, request.header('x-nextcloud-talk-signature'), { secret })
    // The secret is that of one server: another one that has it, too, is not this account.
    verifySecret(trimSlashes(request.header('x-nextcloud-talk-backend') ?? ''), trimSlashes(base))
    if (random.length < MIN_RANDOM || this.#randoms.has(random))
      throw new Refusal('unauthorized', 'The request is not a new one of the server')
    return random
  }

  async #receive(raw: unknown): Promise<void> {
    const created = v.safeParse(Created, raw)
    if (!created.success) return this.#link.log.warn('Nextcloud sent a message in a form that cannot be read')
    const { bot_name: botName, direct_rooms: directRooms } = this.#link.config
    const message = decodeActivity(created.output, { botName, directRooms, now: this.#link.now() })
    if (message) await this.#link.receive(message)
  }
}
