import * as v from 'valibot'
import { readJson, SerialQueue } from 'svc/sdk'
import type { ChannelLink } from 'svc/channels'

const KEY = 'bot-contexts'
const MAX_PEOPLE = 50
const Stored = v.array(v.tuple([v.string(), v.string()]))

/** Each message of a person comes with a token, which answers to that person have to carry. */
export class BotContexts {
  readonly #link: Pick<ChannelLink<unknown>, 'secrets'>
  readonly #queue = new SerialQueue()

  constructor(link: Pick<ChannelLink<unknown>, 'secrets'>) {
    this.#link = link
  }

  async of(person: string): Promise<string | undefined> {
    return (await this.#queue.run(() => this.#read())).find(([id]) => id === person)?.[1]
  }

  /** Durable when it settles. */
  keep(person: string, token: string): Promise<void> {
    return this.#queue.run(async () => {
      const known = await this.#read()
      if (known.at(-1)?.[0] === person && known.at(-1)?.[1] === token) return
      const next = [...known.filter(([id]) => id !== person), [person, token]].slice(-MAX_PEOPLE)
      await this.#link.secrets.write(KEY, JSON.stringify(next))
    })
  }

  async #read(): Promise<v.InferOutput<typeof Stored>> {
    const stored = await this.#link.secrets.read(KEY)
    return stored ? v.parse(Stored, readJson(stored)) : []
  }
}
