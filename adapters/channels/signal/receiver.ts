import * as v from 'valibot'
import type { Link } from './config.ts'
import { decodeEnvelope } from './decode.ts'
import { Envelope, Received } from './wire.ts'

const SINCE = 'since'
/** How far the clocks of Signal and of this machine may be apart. */
const CLOCK_MARGIN_MS = 60_000

/** Passes on the messages of people to the number of the bot that were sent since it was first connected. */
export class SignalReceiver {
  readonly #link: Link
  readonly #sinceMs: number
  readonly #warnings = new Set<string>()

  static async open(link: Link): Promise<SignalReceiver> {
    const since = await link.state.read(SINCE)
    if (since !== undefined) return new SignalReceiver(link, Number(since))
    const now = link.now() - CLOCK_MARGIN_MS
    await link.state.write(SINCE, String(now))
    return new SignalReceiver(link, now)
  }
  private constructor(link: Link, sinceMs: number) {
    this.#link = link
    this.#sinceMs = sinceMs
  }

  warnings(): readonly string[] {
    return [...this.#warnings]
  }

  async receive(event: unknown): Promise<void> {
    const { number } = this.#link.config
    const received = v.safeParse(Received, event)
    if (!received.success) return this.#link.log.warn('signal-cli sent an event in a form that cannot be read')
    const { account, envelope: raw } = received.output
    if (account && account !== number) return this.#warn(`signal-cli serves another number than ${number}`)
    if (raw === undefined) return
    const envelope = v.safeParse(Envelope, raw)
    if (!envelope.success) return this.#link.log.warn('signal-cli sent a message in a form that cannot be read')
    if ((envelope.output.serverReceivedTimestamp ?? envelope.output.timestamp) < this.#sinceMs) return
    const message = decodeEnvelope(envelope.output, number)
    if (message) await this.#link.receive(message)
  }

  #warn(text: string): void {
    if (!this.#warnings.has(text)) this.#link.log.warn(text)
    this.#warnings.add(text)
  }
}
