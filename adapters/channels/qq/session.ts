import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { SavedPosition } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import { Session } from './wire.ts'

/** The session of the gateway that a connection resumes, also after a restart of the daemon. */
export class SavedSession {
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

  /** The events up to this one are dealt with: after a resume QQ sends those after it. */
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
