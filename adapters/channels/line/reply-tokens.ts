import * as v from 'valibot'
import { readJson, SerialQueue } from 'svc/sdk'
import type { ChannelLink } from 'svc/channels'

const KEY = 'reply-tokens'
const MAX_CLAIMS = 1000
const Claims = v.array(v.object({ token: v.string(), until: v.number(), messageId: v.string() }))
type Claim = v.InferOutput<typeof Claims>[number]

/**
 * Which message uses which reply token. A reply costs nothing, but its token is good for one, and LINE takes no retry
 * key with it. A claim is durable before the token is used: so a message that is sent again, even after a crash, knows
 * that a used token means that it was sent.
 */
export class ReplyTokens {
  readonly #link: Pick<ChannelLink<unknown>, 'state' | 'now'>
  readonly #work = new SerialQueue()
  #claims: readonly Claim[] | undefined

  constructor(link: Pick<ChannelLink<unknown>, 'state' | 'now'>) {
    this.#link = link
  }

  /** `again`: this message claimed it before. `taken`: another message did. */
  claim(token: string, until: number, messageId: string): Promise<'new' | 'again' | 'taken'> {
    return this.#work.run(async () => {
      const claims = (this.#claims ??= await this.#read())
      const known = claims.find((claim) => claim.token === token)
      if (known) return known.messageId === messageId ? 'again' : 'taken'
      const now = this.#link.now()
      const good = claims.filter((claim) => claim.until > now)
      await this.#write([...good, { token, until, messageId }].slice(-MAX_CLAIMS))
      return 'new'
    })
  }

  /** LINE does not take the token, and nobody used it: what claimed it goes another way, on every attempt. */
  async giveUp(token: string): Promise<void> {
    await this.#work.run(async () => {
      const claims = (this.#claims ??= await this.#read())
      await this.#write(claims.map((claim) => (claim.token === token ? { ...claim, messageId: '' } : claim)))
    })
  }

  async #write(claims: readonly Claim[]): Promise<void> {
    await this.#link.state.write(KEY, JSON.stringify(claims))
    this.#claims = claims
  }

  async #read(): Promise<readonly Claim[]> {
    const saved = await this.#link.state.read(KEY)
    return saved === undefined ? [] : v.parse(Claims, readJson(saved))
  }
}
