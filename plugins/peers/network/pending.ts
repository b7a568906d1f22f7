/** Requests that are worked on, by node: a link that is made anew is no new allowance. */
export class PendingRequests {
  readonly #byNode = new Map<string, Map<string, number>>()
  readonly max: number
  constructor(max: number) {
    this.max = max
  }

  /** Whether there was room. The same request over another link needs no more of it. */
  enter(nodeId: string, id: string): boolean {
    const ids = this.#byNode.get(nodeId) ?? new Map<string, number>()
    const before = ids.get(id) ?? 0
    if (before === 0 && ids.size >= this.max) return false
    this.#byNode.set(nodeId, ids.set(id, before + 1))
    return true
  }
  leave(nodeId: string, id: string): void {
    const ids = this.#byNode.get(nodeId)
    const left = (ids?.get(id) ?? 0) - 1
    if (left > 0) ids?.set(id, left)
    else ids?.delete(id)
    if (ids?.size === 0) this.#byNode.delete(nodeId)
  }
}
