import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { readJson, SerialQueue } from 'svc/sdk'
import type { ChannelLink, OutboundMessage } from 'svc/channels'

const KEY = 'send-times'
/** Messages whose attempts may still go on. */
const MAX_TIMES = 200
const Times = v.array(v.tuple([v.string(), v.string(), v.number()]))

/**
 * The times that messages are sent with, in seconds. A message has the same on every attempt, and with it the same id;
 * in a chat each is later than the one before it, because apps sort by time.
 */
export class SendTimes {
  readonly #link: Pick<ChannelLink<unknown>, 'state' | 'now'>
  readonly #queue = new SerialQueue()

  constructor(link: Pick<ChannelLink<unknown>, 'state' | 'now'>) {
    this.#link = link
  }

  /** Durable when it settles. */
  timeOf({ id, to }: Pick<OutboundMessage, 'id' | 'to'>): Promise<number> {
    return this.#queue.run(async () => {
      const times = await this.#read()
      const known = times.find(([message]) => message === id)
      if (known) return known[2]
      const chat = createHash('sha256').update(to.chatId).digest('hex').slice(0, 16)
      const earlier = times.flatMap(([, place, time]) => (place === chat ? [time + 1] : []))
      const time = Math.max(Math.floor(this.#link.now() / 1000), ...earlier)
      const next = [...times, [id, chat, time]].slice(-MAX_TIMES)
      await this.#link.state.write(KEY, JSON.stringify(next))
      return time
    })
  }

  async #read(): Promise<v.InferOutput<typeof Times>> {
    const stored = await this.#link.state.read(KEY)
    return stored === undefined ? [] : v.parse(Times, readJson(stored))
  }
}
