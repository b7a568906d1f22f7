import * as v from 'valibot'
import type { DaemonClient } from '../net/daemon-client.ts'

const Turns = v.looseObject({
  turns: v.array(v.looseObject({ state: v.string(), ahead: v.optional(v.array(v.string()), []) })),
})
/** Nothing was heard for so long: then the daemon is asked, and again after as long. */
const SLOW_MS = 3000

/** "Where is my message?": while an answer is slow, says what the daemon says of the message, when that is something new. */
export class Whereabouts {
  readonly #client: DaemonClient
  readonly #say: (text: string) => void
  #timer: NodeJS.Timeout | undefined
  #heard = 0
  #told: string | undefined
  constructor(client: DaemonClient, say: (text: string) => void) {
    this.#client = client
    this.#say = say
  }

  /** The message was sent, or something of the answer came. */
  heard(agentId: string): void {
    this.end()
    this.#again(agentId, this.#heard)
  }
  end(): void {
    this.#heard++
    clearTimeout(this.#timer)
  }

  #again(agentId: string, heard: number): void {
    this.#timer = setTimeout(() => {
      void this.#look(agentId, heard)
    }, SLOW_MS).unref()
  }
  async #look(agentId: string, heard: number): Promise<void> {
    try {
      const { turns } = await this.#client.call('GET', `/api/agents/${agentId}/turns?limit=20`, Turns)
      const open = turns.find(({ state }) => state === 'queued' || state === 'running' || state === 'waiting')
      const said = open && describe(open.state, open.ahead.length)
      if (heard !== this.#heard) return
      if (said !== undefined && said !== this.#told) this.#say(said)
      this.#told = said
    } catch {
      // The answer that is being read tells of a daemon that is gone.
      return
    }
    this.#again(agentId, heard)
  }
}

function describe(state: string, ahead: number): string {
  if (state === 'waiting') return 'it waits for an approval'
  if (state === 'running') return 'received; the model is at it'
  return ahead === 0
    ? 'received; it is about to be answered'
    : `received; ${ahead} message${ahead === 1 ? ' is' : 's are'} answered before it`
}
