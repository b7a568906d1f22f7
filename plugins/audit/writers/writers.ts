import { randomUUID } from 'node:crypto'
import type { Statement, Vault } from 'svc/sdk'
import type { Fields } from '../chain.ts'
import { NUMBERED_AT_ONCE } from './store.ts'
import type { ChainTip, WriterStore } from './store.ts'

/** A daemon of an older version numbers its entries itself: then the same number may be given twice, and is refused. */
const MAX_ATTEMPTS = 5
const DUPLICATE = '23505'

/**
 * The chains of the daemons on one database. An entry is added to a chain of its writer, so that writers neither wait
 * for each other nor fork a chain, and gets its number in the common chain once it is committed.
 */
export class Writers {
  readonly #store: WriterStore
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined
  constructor(store: WriterStore) {
    this.#store = store
  }

  append(fields: Fields): Statement {
    return this.#store.append(fields)
  }
  tips(): Promise<readonly ChainTip[]> {
    return this.#store.tips()
  }
  forget(writer: string, seq: number): Statement {
    return this.#store.forget(writer, seq)
  }
  hasWritten(): Promise<boolean> {
    return this.#store.hasWritten()
  }

  /** The key of the vault under this name: `made`, unless another daemon made one at the same time. */
  async makeKey(vault: Pick<Vault, 'read' | 'write'>, name: string, made: string): Promise<string> {
    const known = await this.#store.keyClaim(name)
    const found = await vault.read(name)
    if (found !== undefined) return found
    try {
      await vault.write(name, made, [this.#store.claimKey(name, known, randomUUID())])
      return made
    } catch (error) {
      const other = await vault.read(name)
      if (other === undefined) throw error
      return other
    }
  }

  /** Settles when every entry that was committed before the call has its number. */
  number(): Promise<void> {
    if (!this.#running) return this.#start()
    // The run that is under way may have looked too early.
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.#start()
      })
    return this.#next
  }
  #start(): Promise<void> {
    this.#running = this.#number().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }
  async #number(): Promise<void> {
    if (!(await this.#store.hasStaged())) return
    for (let attempt = 1; ;) {
      try {
        if ((await this.#store.number()) < NUMBERED_AT_ONCE) return
        attempt = 1
      } catch (error) {
        const isDuplicate = error instanceof Error && 'code' in error && error.code === DUPLICATE
        if (!isDuplicate || attempt++ === MAX_ATTEMPTS) throw error
      }
    }
  }
}
