import { Observable } from './observable.ts'
import type { Turn } from './wire.ts'

/** After this long without an event the daemon is polled, and again after the same time. */
const slowMs = 3000

/** The daemon's view of a message whose answer is slow. */
export class TurnStatus {
  readonly text = new Observable<string | undefined>(undefined)
  readonly #findTurn: () => Promise<Turn | undefined>
  #timer: ReturnType<typeof setTimeout> | undefined
  #quietSinceMs = 0
  /** Counts events, so that the answer to an older poll is ignored. */
  #heard = 0

  /** `findTurn` throws when the daemon cannot be reached. */
  constructor(findTurn: () => Promise<Turn | undefined>) {
    this.#findTurn = findTurn
  }

  /** The message was sent, or a part of the answer arrived. */
  heard(): void {
    this.end()
    this.#quietSinceMs = Date.now()
    this.#again(this.#heard)
  }
  end(): void {
    this.#heard++
    clearTimeout(this.#timer)
    this.text.set(undefined)
  }

  #again(heard: number): void {
    this.#timer = setTimeout(() => {
      this.#findTurn()
        .then(
          (turn) => {
            if (heard === this.#heard)
              this.text.set(turn && describeTurn(turn, Math.round((Date.now() - this.#quietSinceMs) / 1000)))
          },
          () => undefined /* The connection shows that the daemon does not answer. */,
        )
        .finally(() => {
          if (heard === this.#heard) this.#again(heard)
        })
    }, slowMs)
  }
}

/** One sentence; nothing for a message that is not on its way any more. */
function describeTurn({ state, ahead }: Turn, quietSecs: number): string | undefined {
  switch (state) {
    case 'queued':
      return ahead.length === 0
        ? 'Received. It is about to be answered.'
        : `Received. ${ahead.length === 1 ? 'One message is' : `${ahead.length} messages are`} answered before it.`
    case 'running':
      return `Received. The model has been at it for ${quietSecs} seconds.`
    case 'waiting':
      return 'It waits for your approval.'
    default:
      return undefined
  }
}
