import type { Socket } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'

/** A client this far behind gets the next list instead of one more. */
const BEHIND_BYTES = 256 * 1024

/** Tells every open socket which agents there are; one query and one serialisation however many there are. */
export class AgentListFeed {
  readonly #agents: Agents
  readonly #firstMs: number
  readonly #sockets = new Set<Socket>()
  readonly #fresh = new Set<Socket>()
  readonly #failed: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined
  constructor(options: {
    readonly agents: Agents
    readonly firstMs: number
    readonly failed: (error: unknown) => void
  }) {
    this.#agents = options.agents
    this.#firstMs = options.firstMs
    this.#failed = options.failed
  }

  get size(): number {
    return this.#sockets.size
  }
  add(socket: Socket): void {
    this.#sockets.add(socket)
    this.#fresh.add(socket)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#send(this.#fresh).catch(this.#failed)
    }, this.#firstMs).unref()
  }
  remove(socket: Socket): void {
    this.#sockets.delete(socket)
    this.#fresh.delete(socket)
  }
  /** Interface 6.1: every five seconds. */
  tick(): Promise<void> {
    return this.#send(this.#sockets)
  }
  end(): void {
    clearTimeout(this.#timer)
  }

  async #send(to: ReadonlySet<Socket>): Promise<void> {
    if (to.size === 0) return
    const agents = (await this.#agents.summaries()).map(({ id, name, state, model_provider, model_name }) => ({
      id,
      name,
      state,
      model_provider,
      model_name,
    }))
    const frame = JSON.stringify({ type: 'agents_updated', agents })
    for (const socket of to) {
      this.#fresh.delete(socket)
      if (socket.bufferedBytes < BEHIND_BYTES) socket.send(frame)
    }
  }
}
