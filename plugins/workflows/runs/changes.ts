/** Tells readers in this process that a run changed; what changed is in its rows. */
export class RunChanges {
  readonly #listeners = new Set<(runId: string) => void>()

  tell(runId: string): void {
    for (const listener of this.#listeners) listener(runId)
  }
  listen(listener: (runId: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
