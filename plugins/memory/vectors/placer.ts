import { setImmediate as nextTurn } from 'node:timers/promises'
import { RepeatedWork } from 'svc/internal'
import { ownerOf } from './owner.ts'
import { CHUNK, emptyPlaces, signsOfBytes, toNumbers, toPlace } from './signs.ts'
import type { SignStore, UnplacedRow } from './store.ts'

/** Vectors of one commit: what one write keeps others waiting. */
const BATCH = 64

/** Puts the signs of new vectors, and of those that an older version wrote, where a search reads them. */
export class VectorPlacer {
  readonly #store: SignStore
  readonly #work: RepeatedWork
  constructor(store: SignStore) {
    this.#store = store
    this.#work = new RepeatedWork(() => this.#placeAll())
  }

  /** Settles when all have a place that were there before the call. */
  run(): Promise<void> {
    return this.#work.run()
  }

  /** The same, and drops what is empty. */
  async sweep(): Promise<void> {
    await this.run()
    await this.#store.commit([this.#store.dropEmpty()])
  }

  async #placeAll(): Promise<void> {
    let before: string | undefined
    for (;;) {
      const rows = await this.#store.unplaced(BATCH)
      // One that finds no place is left to the next run.
      if (rows.length === 0 || rows[0]?.memory_id === before) return
      before = rows[0]?.memory_id
      for (const own of Map.groupBy(rows.map(toPlaced), ({ key }) => key).values()) await this.#place(own)
      await nextTurn()
    }
  }
  /** Of one agent and model, with as many signs. */
  async #place(rows: readonly Placed[]): Promise<void> {
    const [first] = rows
    if (!first) return
    const { agent_id: agentId, model } = first.row
    const bytes = first.place.length * CHUNK
    let left = rows
    while (left.length > 0) {
      const chunk = await this.#store.withRoom(agentId, model, bytes)
      if (!chunk) {
        await this.#store.commit([this.#store.addChunk(agentId, model, new Uint8Array(bytes))])
        continue
      }
      const empty = emptyPlaces(toNumbers(chunk.places))
      const taken = left.slice(0, empty.length)
      await this.#store.commit(
        taken.flatMap(({ row, place }, at) => this.#store.setPlace(row, chunk, empty[at] ?? 0, place)),
      )
      left = left.slice(empty.length)
    }
  }
}

interface Placed {
  readonly row: UnplacedRow
  readonly place: Uint8Array
  readonly key: string
}
function toPlaced(row: UnplacedRow): Placed {
  const place = toPlace(signsOfBytes(row.vector), ownerOf(row))
  return { row, place, key: JSON.stringify([row.agent_id, row.model, place.length]) }
}
