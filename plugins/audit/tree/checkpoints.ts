import type { AuditLog } from '../service.ts'
import type { AuditStore } from '../store.ts'
import { BLOCK, Frontier, leafOf, proofOf } from './merkle.ts'
import type { Signer, Verifier } from './signer.ts'
import { checkpointText } from './store.ts'
import type { Checkpoint, TreeStore } from './store.ts'

/** Rows hashed before other work gets its turn: about a millisecond. */
const PAGE = 256
/** A checkpoint covers all entries before it, so old ones are only of use to somebody who kept their signature. */
const KEEP = 10_000
const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

/** That an entry is among those a checkpoint was signed for. */
export interface Proof {
  readonly leafIndex: number
  readonly checkpoint: Checkpoint
  /** Hex, nearest first. */
  readonly path: readonly string[]
  readonly publicKey: string
}

/** Signs, in the background, what the trail is: the root of a tree over all its entries. */
export class Checkpoints {
  readonly store: TreeStore
  readonly signer: Signer
  readonly #trail: AuditStore
  readonly #log: AuditLog
  readonly #now: () => string
  #frontier: Frontier | undefined
  #lastHash = ''
  #running: Promise<boolean> | undefined

  constructor(parts: {
    readonly store: TreeStore
    readonly trail: AuditStore
    readonly signer: Signer
    readonly log: AuditLog
    readonly now: () => string
  }) {
    this.store = parts.store
    this.signer = parts.signer
    this.#trail = parts.trail
    this.#log = parts.log
    this.#now = parts.now
  }

  /** Signs what is there now. `false` when that is signed already, or does not fit to what was. One at a time. */
  take(): Promise<boolean> {
    this.#running ??= this.#take().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** `undefined` when no checkpoint covers the entry yet, or when it was dropped. */
  async prove(id: number): Promise<Proof | undefined> {
    const [checkpoint, verifier, origin] = await Promise.all([
      this.store.newest(),
      this.signer.verifier(),
      this.store.origin(),
    ])
    if (!checkpoint || !verifier || id > checkpoint.size || id < 1 || id <= (origin?.entry_id ?? 0)) return undefined
    const position = id - 1
    const leaves = new Map<number, Buffer>()
    const read = async (block: number): Promise<void> => {
      for (const link of await this.#trail.after(block * BLOCK, BLOCK)) leaves.set(link.id - 1, leafOf(link.hash))
    }
    await read(Math.floor(position / BLOCK))
    await read(Math.floor(checkpoint.size / BLOCK))
    const blocks = await this.store.blocks()
    const path = proofOf(position, checkpoint.size, {
      leaf: (at) => known(leaves.get(at)),
      block: (at) => known(blocks.get(at)),
    })
    return { leafIndex: position, checkpoint, path: path.map((hash) => hash.toString('hex')), publicKey: verifier.pem }
  }

  async #take(): Promise<boolean> {
    const frontier = await this.#resumed()
    const roots: { position: number; root: Buffer }[] = []
    const newest = await this.store.newest()
    // A failure below leaves the memory ahead of what is stored: the next run begins from the rows again.
    this.#frontier = undefined
    for (;;) {
      const page = await this.#trail.after(frontier.size, PAGE)
      for (const link of page) {
        if (link.id !== frontier.size + 1 || (this.#lastHash !== '' && link.prev_hash !== this.#lastHash))
          return this.#refused(link.id)
        const root = frontier.add(leafOf(link.hash))
        if (root) roots.push({ position: frontier.size / BLOCK - 1, root })
        this.#lastHash = link.hash
        // What was signed before must not be signed over with another past.
        if (frontier.size === newest?.size && frontier.root().toString('hex') !== newest.root)
          return this.#refused(link.id)
      }
      if (page.length < PAGE) break
      await pause()
    }
    if (newest && frontier.size < newest.size) return this.#refused(frontier.size + 1)
    if (frontier.size > 0 && newest?.size !== frontier.size) {
      const unsigned = { size: frontier.size, root: frontier.root().toString('hex'), timestamp: this.#now() }
      const checkpoint = { ...unsigned, ...(await this.signer.sign(checkpointText(unsigned))) }
      await this.store.commit([
        ...roots.map(({ position, root }) => this.store.block(position, root)),
        this.store.checkpoint(checkpoint),
        this.store.thin(KEEP),
      ])
      this.#frontier = frontier
      return true
    }
    this.#frontier = frontier
    return false
  }

  #refused(id: number): false {
    this.#log.error('the audit chain is broken: no checkpoint is signed over it', { id })
    return false
  }

  /** What was hashed before, from memory or from the roots of whole blocks. */
  async #resumed(): Promise<Frontier> {
    if (this.#frontier) return this.#frontier
    const frontier = new Frontier()
    const blocks = await this.store.blocks()
    for (let position = 0; blocks.has(position); position++) frontier.addBlock(known(blocks.get(position)))
    const origin = await this.store.origin()
    const last = frontier.size === origin?.entry_id ? origin.hash : (await this.#trail.find(frontier.size))?.hash
    this.#lastHash = last ?? ''
    return frontier
  }
}

export type { Checkpoint, Verifier }

function known(node: Buffer | undefined): Buffer {
  if (!node) throw new Error('the tree of the audit trail has a gap')
  return node
}
