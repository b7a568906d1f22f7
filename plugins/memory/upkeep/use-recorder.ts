import { RepeatedWork } from 'svc/internal'
import type { UpkeepStore } from './store.ts'

/** Uses that are written together: a write for each search would cost more than the search. */
const BATCH = 100

/** Writes down which memories were found, so that those stay longer. What was not written when a daemon dies is lost. */
export class UseRecorder {
  readonly #ids = new Set<string>()
  readonly #work: RepeatedWork
  readonly #background: (work: () => Promise<void>) => void
  constructor(store: UpkeepStore, background: (work: () => Promise<void>) => void, now: () => number) {
    this.#background = background
    this.#work = new RepeatedWork(async () => {
      const ids = [...this.#ids]
      this.#ids.clear()
      if (ids.length > 0) await store.commit([store.touch(ids, now())])
    })
  }

  /** In the background: nobody who searches waits for it. */
  add(ids: readonly string[]): void {
    for (const id of ids) this.#ids.add(id)
    if (this.#ids.size >= BATCH) this.#background(() => this.flush())
  }
  flush(): Promise<void> {
    return this.#work.run()
  }
}
