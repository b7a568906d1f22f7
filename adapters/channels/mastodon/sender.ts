import { RecentMap } from 'svc/channels'
import type { ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type { MastodonApi } from './api.ts'
import type { MastodonConfig } from './config.ts'
import { TIMELINE } from './decode.ts'
import { partsOf, replyContextOf, visibilityOf } from './encode.ts'
import type { Instance } from './wire.ts'

const MAX_CHAINS = 1000
const TAKEN = /^(?:image|video|audio)\//

/** Sends messages as posts that answer one another. */
export class MastodonSender {
  readonly #link: ChannelLink<MastodonConfig>
  readonly #api: MastodonApi
  readonly #taken: ReadonlySet<string> | undefined
  /** The last post that answers a post of somebody: the next part of the answer answers it. */
  readonly #last = new RecentMap<string, string>(MAX_CHAINS)

  constructor(link: ChannelLink<MastodonConfig>, api: MastodonApi, instance: Instance) {
    const types = instance.configuration.media_attachments?.supported_mime_types
    this.#link = link
    this.#api = api
    this.#taken = types ? new Set(types) : undefined
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const { to, replyTo } = message
    const context = replyContextOf(to.replyContext)
    const isTimeline = to.chatId === TIMELINE
    const acct = context?.acct ?? (isTimeline ? undefined : (await this.#api.account(to.chatId)).acct)
    const most = isTimeline ? this.#link.config.visibility : 'direct'
    const visibility = visibilityOf(context?.visibility, most)
    const asked = context?.status ?? to.threadId
    let answers = replyTo ?? (asked === undefined ? undefined : (this.#last.get(asked) ?? asked))
    const ids: string[] = []
    for (const [index, { text, files }] of partsOf(message, (mime) => this.#isTaken(mime)).entries()) {
      const media: string[] = []
      for (const file of files) media.push(await this.#api.upload(file))
      // Parts that an earlier attempt has sent are answered with what they became.
      const key = index === 0 ? message.id : `${message.id}-${index}`
      answers = await this.#api.post({ text, acct, answers, visibility, media }, key)
      ids.push(answers)
    }
    if (asked !== undefined && answers !== undefined) this.#last.set(asked, answers)
    return { id: ids[0] ?? '' }
  }

  #isTaken(mime: string): boolean {
    return this.#taken ? this.#taken.has(mime) : TAKEN.test(mime)
  }
}
