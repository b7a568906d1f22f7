import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Memory } from '../contract.ts'
import type { MemoryStore } from '../entries/store.ts'
import { CHUNK, measure, NONE, signsOf, toNumbers } from './signs.ts'
import type { Wanted } from './signs.ts'
import type { Among, NearRow, SignStore, Version } from './store.ts'
import { cosine } from './vector.ts'

/** Vectors with most signs in common that are read, for their exact order. */
const COMPARED = 100
/** Where a filter leaves few of these, so many are read at most. */
const MAX_READ = 2_000
/** Rows of memories that are read or compared before others have their turn. */
const SLICE = 64

export interface VectorSearchDeps {
  readonly store: SignStore
  readonly memories: Pick<MemoryStore, 'comparable'>
  /** Memories of all agents whose signs are kept in memory at most. */
  readonly maxKept: number
}
export interface NearMemory {
  readonly memory: Memory
  /** The cosine of its vector. */
  readonly similarity: number
}
interface Kept {
  readonly version: number
  readonly numbers: Uint32Array
}

/** Finds memories by the signs of their vectors, which the database has; a copy of those that were used last is kept. */
export class VectorSearch {
  readonly #deps: VectorSearchDeps
  /** By the number of the row; the one that was used last comes last. */
  readonly #kept = new Map<number, Kept>()
  constructor(deps: VectorSearchDeps) {
    this.#deps = deps
  }

  /** Of how many memories there is room in what is kept. */
  get size(): number {
    return this.#kept.size * CHUNK
  }

  /** By id. `owners`: who counts, as far as places tell. */
  async find(
    vector: Float32Array,
    among: Among,
    owners: Pick<Wanted, 'owns' | 'user'>,
    limit: number,
  ): Promise<ReadonlyMap<string, NearMemory>> {
    const { store } = this.#deps
    const { distances, histogram, versions } = await this.#measure({ ...owners, signs: signsOf(vector) }, among)
    await nextTurn()
    const found: NearMemory[] = []
    let [nearer, read] = [0, 0]
    while (nearer < histogram.length && found.length < limit && read < MAX_READ) {
      let [end, count] = [nearer, 0]
      while (end < histogram.length && count < COMPARED) count += histogram[end++] ?? 0
      const places = placesBetween(distances, versions, nearer, end).slice(0, MAX_READ - read)
      const rows = places.length === 0 ? [] : await store.at(places, among.model)
      found.push(...(await this.#counting(byCosine(vector, rows), among, limit)))
      read += places.length
      nearer = end
    }
    const nearest = found.toSorted((one, other) => other.similarity - one.similarity).slice(0, limit)
    return new Map(nearest.map((near) => [near.memory.id, near]))
  }
  /** The nearest of these that count; of most vectors that are compared the memory is never read. */
  async #counting(near: readonly Near[], among: Among, limit: number): Promise<readonly NearMemory[]> {
    const found: NearMemory[] = []
    for (let from = 0; from < near.length && found.length < limit; from += limit) {
      const similarities = new Map(near.slice(from, from + limit))
      for (const memory of await this.#deps.memories.comparable([...similarities.keys()], among))
        found.push({ memory, similarity: similarities.get(memory.id) ?? 0 })
    }
    return found
  }

  /** How many signs of each place of these agents are others, and of how many places so many. */
  async #measure(wanted: Wanted, among: Among): Promise<Measured> {
    const versions = await this.#deps.store.versions(among.agentIds, among.model)
    const distances = new Uint16Array(versions.length * CHUNK)
    const histogram = new Uint32Array(wanted.signs.length * 32 + 1)
    for (let from = 0; from < versions.length; from += SLICE) {
      if (from > 0) await nextTurn()
      const slice = versions.slice(from, from + SLICE)
      for (const [at, numbers] of (await this.#read(slice)).entries())
        if (numbers) measure(numbers, wanted, distances, (from + at) * CHUNK, histogram)
        else distances.fill(NONE, (from + at) * CHUNK, (from + at + 1) * CHUNK)
    }
    return { distances, histogram, versions }
  }
  /** `undefined`: it is gone since its version was read. */
  async #read(versions: readonly Version[]): Promise<readonly (Uint32Array | undefined)[]> {
    const old = versions.filter(({ id, version }) => this.#kept.get(id)?.version !== version)
    const fresh = new Map<number, Kept>()
    if (old.length > 0)
      for (const { id, version, places } of await this.#deps.store.chunks(old.map(({ id }) => id)))
        fresh.set(id, { version, numbers: toNumbers(places) })
    return versions.map(({ id, version }) => {
      const kept = this.#kept.get(id)
      const one = kept?.version === version ? kept : fresh.get(id)
      this.#kept.delete(id)
      if (one) this.#keep(id, one)
      return one?.numbers
    })
  }
  #keep(id: number, kept: Kept): void {
    this.#kept.set(id, kept)
    for (const oldest of this.#kept.keys()) {
      if (this.size <= Math.max(CHUNK, this.#deps.maxKept)) return
      this.#kept.delete(oldest)
    }
  }
}

type Near = readonly [id: string, similarity: number]
const byCosine = (vector: Float32Array, rows: readonly NearRow[]): readonly Near[] =>
  rows
    .map(({ memory_id: id, vector: bytes }): Near => [id, cosine(vector, bytes)])
    .toSorted(([, one], [, other]) => other - one)

interface Measured {
  /** By place of the rows, one after the other. */
  readonly distances: Uint16Array
  /** By distance. */
  readonly histogram: Uint32Array
  readonly versions: readonly Version[]
}
/** Places whose distance is one of these, the nearest first. */
function placesBetween(
  distances: Uint16Array,
  versions: readonly Version[],
  from: number,
  to: number,
): readonly number[] {
  const found: { readonly place: number; readonly distance: number }[] = []
  for (let at = 0; at < distances.length; at++) {
    const distance = distances[at] ?? NONE
    if (distance < from || distance >= to) continue
    const chunk = versions[Math.floor(at / CHUNK)]?.id ?? 0
    found.push({ place: chunk * CHUNK + (at % CHUNK), distance })
  }
  return found.toSorted((one, other) => one.distance - other.distance).map(({ place }) => place)
}
