import * as v from 'valibot'
import type { DaemonClient } from 'svc/cli'

const Turns = v.looseObject({
  turns: v.array(v.looseObject({ state: v.string(), ahead: v.optional(v.array(v.string()), []) })),
})
/** How long an answer may be silent before the daemon is asked about the message, and between two such requests. */
const POLL_INTERVAL_MS = 3000

/** Reports what the daemon says of a message while nothing of its answer comes. */
export class TurnStatus {
  readonly #client: DaemonClient
  readonly #onChange: (text: string) => void
  #timer: NodeJS.Timeout | undefined
  /** Counts the events, so that a reply that is older than the last one is dropped. */
  #events = 0
  #reported: string | undefined
  constructor(client: DaemonClient, onChange: (text: string) => void) {
    this.#client = client
    this.#onChange = onChange
  }

  /** The message was sent, or a part of the answer came: the wait begins again. */
  restart(agentId: string): void {
    this.stop()
    this.#schedule(agentId, this.#events)
  }
  stop(): void {
    this.#events++
    clearTimeout(this.#timer)
  }

  #schedule(agentId: string, events: number): void {
    this.#timer = setTimeout(() => {
      void this.#poll(agentId, events)
    }, POLL_INTERVAL_MS).unref()
  }
  async #poll(agentId: string, events: number): Promise<void> {
    try {
      const { turns } = await this.#client.call('GET', `/api/agents/${agentId}/turns?limit=20`, Turns)
      const open = turns.find(({ state }) => state === 'queued' || state === 'running' || state === 'waiting')
      const text = open && describe(open.state, open.ahead.length)
      if (events !== this.#events) return
      if (text !== undefined && text !== this.#reported) this.#onChange(text)
      this.#reported = text
    } catch {
      // The stream of the answer reports a daemon that is gone.
      return
    }
    this.#schedule(agentId, events)
  }
}

function describe(state: string, ahead: number): string {
  if (state === 'waiting') return 'it waits for an approval'
  if (state === 'running') return 'received; the model is at it'
  if (ahead === 0) return 'received; it is about to be answered'
  return `received; ${ahead} message${ahead === 1 ? ' is' : 's are'} answered before it`
}
