import { useEffect, useState } from 'preact/hooks'

/** A value that notifies its watchers when it is replaced. */
export class Observable<T> {
  #value: T
  #watchers = new Set<() => void>()
  constructor(value: T) {
    this.#value = value
  }

  get value(): T {
    return this.#value
  }
  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    // Watchers that join during a notification have the new value already.
    for (const watcher of Array.from(this.#watchers)) watcher()
  }
  update(change: (value: T) => T): void {
    this.set(change(this.#value))
  }
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }
}

/** The value now; the component is drawn again when it is replaced. */
export function useValue<T>(observable: Observable<T>): T {
  const [, draw] = useState(0)
  const drawn = observable.value
  useEffect(() => {
    const unwatch = observable.watch(() => draw((n) => n + 1))
    // An effect runs some time after rendering: replacements until then were not observed.
    if (!Object.is(drawn, observable.value)) draw((n) => n + 1)
    return unwatch
  }, [observable])
  return drawn
}
