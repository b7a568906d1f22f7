const MAX_IDS = 10_000

/** The ids of the newest messages: most redeliveries are dropped without a look into the database. */
export class RecentIds {
  readonly #ids = new Set<string>()

  has(id: string): boolean {
    return this.#ids.has(id)
  }
  add(id: string): void {
    this.#ids.add(id)
    if (this.#ids.size <= MAX_IDS) return
    let surplus = MAX_IDS / 2
    for (const old of this.#ids) {
      if (surplus-- <= 0) return
      this.#ids.delete(old)
    }
  }
  delete(id: string): void {
    this.#ids.delete(id)
  }
}
