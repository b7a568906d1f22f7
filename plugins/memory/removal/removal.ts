import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { toIso } from 'svc/internal'
import type { Statement } from 'svc/sdk'
import type { Queue } from '../../queue/contract.ts'
import { REMOVAL_LANE } from '../lazy.ts'
import { areFew, firstSlice } from './slices.ts'
import type { Sized } from './slices.ts'
import type { RemovalStore } from './rows/store.ts'

export interface RemovalDeps {
  readonly store: RemovalStore
  readonly queue: Pick<Queue, 'add'>
  readonly now: () => number
  readonly newId: () => string
  /** Told how many memories of removed agents are deleted. */
  readonly removed: (count: number) => void
}

/** In front of the id under which memories lie that were forgotten while their agents stay. */
const FORGOTTEN = 'forgotten '

/**
 * Deletes what removed agents remembered, some rows at a time: all at once would keep others waiting for minutes. The
 * mark in the database says what is left to do, so it may end at any point and be done again. Many memories that are
 * forgotten together are given to an agent that is removed and never was, and so are gone as fast.
 */
export class MemoryRemoval {
  readonly #deps: RemovalDeps
  constructor(deps: RemovalDeps) {
    this.#deps = deps
  }

  /** For the batch that removes an agent: from then on nothing of its memory is found. */
  later(agentId: string): readonly Statement[] {
    const { store, queue, now, newId } = this.#deps
    // One after the other: each rests as long as it works.
    const job = { lane: REMOVAL_LANE, id: newId(), group: REMOVAL_LANE, payload: { agentId } }
    return [store.mark(agentId, toIso(now())), queue.add(job)]
  }
  /** For the batch that forgets memories: they are deleted in it when they are few, else found by nothing from then on. */
  async forget(ids: readonly string[]): Promise<readonly Statement[]> {
    const { store, newId } = this.#deps
    if (areFew(await store.indexed(ids))) return store.drop(ids)
    const bucket = `${FORGOTTEN}${newId()}`
    return [store.give(ids, bucket), ...this.later(bucket)]
  }
  /**
   * For the batch that replaces a memory, by a new content or by the memory `newer`, before what takes it out of the
   * index: a long one is taken out later.
   */
  async replace(id: string, newer: string = id): Promise<readonly Statement[]> {
    const { store, newId } = this.#deps
    if (areFew(await store.indexed([id]))) return []
    const bucket = `${FORGOTTEN}${newId()}`
    return [...store.giveWords(id, newId(), bucket, newer), ...this.later(bucket)]
  }
  /** In the background: it rests as long as it works. */
  async run(agentId: string, signal: AbortSignal): Promise<void> {
    await this.#removeAll(agentId, async (workedMs) => {
      await delay(workedMs, undefined, { signal })
    })
  }
  /** All that is left of one agent, or of every removed one, for somebody who waits. */
  async finish(agentId?: string): Promise<void> {
    const marked = await this.#deps.store.marked()
    const wanted = agentId === undefined ? marked : marked.filter((id) => id === agentId)
    for (const id of wanted) await this.#removeAll(id, () => nextTurn())
  }
  /** Those of these ids that are of removed agents: whoever brings them back needs their place. */
  async release(ids: readonly string[]): Promise<void> {
    const { store } = this.#deps
    for (;;) {
      const found = await store.among(ids)
      if (found.length === 0) return
      await this.#removeSlice(found)
      await nextTurn()
    }
  }

  async #removeAll(agentId: string, rest: (workedMs: number) => Promise<void>): Promise<void> {
    const { store } = this.#deps
    for (let isDone = false; !isDone;) {
      const began = performance.now()
      isDone = !(await this.#removeSome(agentId))
      await rest(performance.now() - began)
    }
    await store.commit([store.unmark(agentId)])
  }
  /** Whether there was something. */
  async #removeSome(agentId: string): Promise<boolean> {
    const { store, removed } = this.#deps
    if (await store.hasSigns(agentId)) {
      await store.commit([store.dropSigns(agentId)])
      return true
    }
    const found = await store.entries(agentId)
    if (found.length > 0) {
      const count = await this.#removeSlice(found)
      // Of those that were forgotten it was told when they were.
      if (!agentId.startsWith(FORGOTTEN)) removed(count)
      return true
    }
    const others = await store.commit(store.dropOthers(agentId))
    return others.some(({ changes }) => changes > 0)
  }
  /** Returns how many memories that were. */
  async #removeSlice(found: readonly Sized[]): Promise<number> {
    const { store } = this.#deps
    const ids = firstSlice(found)
    const [only = ''] = ids
    if (ids.length === 1) while (await store.shorten(only)) await nextTurn()
    while (!store.isSliceOfVersions(await store.countVersions(ids))) {
      await store.commit([store.dropVersions(ids)])
      await nextTurn()
    }
    const [entries] = await store.commit(store.dropEntries(ids))
    return entries?.changes ?? 0
  }
}
