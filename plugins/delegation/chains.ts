/** One message of an agent to another that is not answered yet. */
interface Sending {
  /** The turn that waits for the answer, and the agents that wait for that turn, the first one first. */
  readonly from: string
  readonly chain: readonly string[]
  readonly sessionId: string
}

/**
 * Which agent waits for which, so that no agent ends up waiting for itself. What waits ends with the process. What a
 * turn may do for those who asked is no matter of this: it is on record with the turn.
 */
export class Chains {
  /** By the turn that answers, in the order in which they were sent. */
  readonly #sendings = new Map<string, Sending>()

  /** The agents that wait for this turn, the first one first; empty when a person or a program sent the message. */
  of(turnId: string): readonly string[] {
    return this.#sendings.get(turnId)?.chain ?? []
  }

  /** Returns how to forget it. */
  add(turnId: string, sending: Sending): () => void {
    this.#sendings.set(turnId, sending)
    return () => void this.#sendings.delete(turnId)
  }

  /** Whether a message of this turn into that session would wait for something that waits for the turn itself. */
  deadlocks(from: string, sessionId: string): boolean {
    const waiting = new Set([from])
    for (let at = this.#sendings.get(from); at; at = this.#sendings.get(at.from)) waiting.add(at.from)
    const visited = new Set<string>()
    const visit = (session: string, before: string | undefined): boolean => {
      for (const [turnId, sending] of this.#sendings) {
        if (turnId === before) break
        if (sending.sessionId !== session || visited.has(turnId)) continue
        visited.add(turnId)
        if (waiting.has(turnId)) return true
        // What this turn itself waits for.
        for (const [answering, next] of this.#sendings)
          if (next.from === turnId && (waiting.has(answering) || visit(next.sessionId, answering))) return true
      }
      return false
    }
    return visit(sessionId, undefined)
  }
}
