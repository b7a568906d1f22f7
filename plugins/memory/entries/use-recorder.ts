import { RepeatedWork } from 'svc/internal'
import type { MemoryStore } from './store.ts'

/** Writes down which memories were found, so that those stay longer: many searches in one commit. */
export class UseRecorder {
  readonly #ids = new Set<string>()
  readonly #work: RepeatedWork
  readonly #background: (work: () => Promise<void>) => void
  #isWaiting = false
  constructor(store: MemoryStore, background: (work: () => Promise<void>) => void, now: () => number) {
    this.#background = background
    this.#work = new RepeatedWork(async () => {
      this.#isWaiting = false
      const ids = [...this.#ids]
      this.#ids.clear()
      if (ids.length > 0) await store.commit([store.touch(ids, now())])
    })
  }

  /** In the background: nobody who searches waits for it. */
  add(ids: readonly string[]): void {
    for (const id of ids) this.#ids.add(id)
    if (this.#isWaiting) return
    this.#isWaiting = true
    this.#background(() => this.#work.run())
  }
}
