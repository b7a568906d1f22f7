import { UpstreamFailure } from 'svc/sdk'
import { RecentMap } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'

const MAX_NAMES = 2000

/** Names for ids, which events do not have. They are for reading: where LINE tells none, the id stands for it. */
export class Names {
  readonly #log: ChannelLink<unknown>['log']
  readonly #names = new RecentMap<string, string>(MAX_NAMES)

  constructor({ log }: Pick<ChannelLink<unknown>, 'log'>) {
    this.#log = log
  }

  async find(id: string, ask: () => Promise<string>): Promise<string> {
    const known = this.#names.get(id)
    if (known !== undefined) return known
    let name = id
    try {
      name = await ask()
    } catch (error) {
      this.#log.debug('LINE did not tell a name', { error })
      if (error instanceof UpstreamFailure && error.retry === 'later') return id
    }
    this.#names.set(id, name)
    return name
  }
}
