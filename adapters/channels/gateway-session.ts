import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import type { ChannelLink } from './channel.ts'
import { SavedPosition } from './saved-position.ts'

/** As it is stored. `seq` is that of the last event that was dealt with; `url` is where the session is resumed. */
const Session = v.object({ id: v.string(), url: v.optional(v.string()), seq: v.number() })
type Session = v.InferOutput<typeof Session>

/** The session of a gateway that a connection resumes, also after a restart of the daemon. */
export class GatewaySession {
  readonly #position: SavedPosition
  #session: Session | undefined

  constructor(link: Pick<ChannelLink<unknown>, 'state' | 'sleep' | 'signal' | 'log'>) {
    this.#position = new SavedPosition(link, 'session')
  }

  get current(): Session | undefined {
    return this.#session
  }

  async load(): Promise<void> {
    const text = await this.#position.read()
    const parsed = text === undefined ? undefined : v.safeParse(Session, readJson(text))
    this.#session = parsed?.success ? parsed.output : undefined
  }

  async begin(session: Session): Promise<void> {
    this.#session = session
    await this.#position.write(JSON.stringify(session))
  }

  /** The events up to this one are dealt with: after a resume the platform sends those after it. */
  advance(seq: number): void {
    if (!this.#session || seq <= this.#session.seq) return
    this.#session = { ...this.#session, seq }
    this.#position.set(JSON.stringify(this.#session))
  }

  async forget(): Promise<void> {
    this.#session = undefined
    await this.#position.clear()
  }

  async flush(): Promise<void> {
    await this.#position.flush()
  }
}
