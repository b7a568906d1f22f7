import { UpstreamFailure } from 'svc/sdk'
import type { ChannelLink } from './channel.ts'
import { RecentMap } from './recent-map.ts'

const MAX_NAMES = 2000

/**
 * Names for ids, where messages have ids only. Names are for reading: where the platform tells none, the id stands for
 * it. Asks again after a failure that may pass.
 */
export class NameCache {
  readonly #log: ChannelLink<unknown>['log']
  readonly #system: string
  readonly #names = new RecentMap<string, string>(MAX_NAMES)

  constructor({ log }: Pick<ChannelLink<unknown>, 'log'>, system: string) {
    this.#log = log
    this.#system = system
  }

  async find(id: string, ask: () => Promise<string>): Promise<string> {
    const known = this.#names.get(id)
    if (known !== undefined) return known
    let name = id
    try {
      name = (await ask()) || id
    } catch (error) {
      this.#log.debug(`${this.#system} did not tell a name`, { error })
      if (error instanceof UpstreamFailure && error.retry === 'later') return id
    }
    this.#names.set(id, name)
    return name
  }
}
