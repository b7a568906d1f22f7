import { hash } from 'node:crypto'

/** Leaves of one stored block: what lies below it need not be read to prove or to go on. */
export const BLOCK = 1_024
const BLOCK_LEVEL = 10
const LEAF = 0x00
const NODE = 0x01

const leafText = Buffer.alloc(33)
const nodeText = Buffer.alloc(65)

/** The leaf of an entry: its hash (64 hex digits) behind the byte of RFC 6962, which no inner node can have. */
export function leafOf(entryHash: string): Buffer {
  leafText[0] = LEAF
  leafText.write(entryHash, 1, 32, 'hex')
  return hash('sha256', leafText, 'buffer')
}
function nodeOf(left: Buffer, right: Buffer): Buffer {
  nodeText[0] = NODE
  left.copy(nodeText, 1)
  right.copy(nodeText, 33)
  return hash('sha256', nodeText, 'buffer')
}
/** The root of a tree without leaves (RFC 6962, 2.1). */
const EMPTY = hash('sha256', Buffer.alloc(0), 'buffer')

/** The right edge of a growing tree: the roots of its whole subtrees, one for each bit of its size. */
export class Frontier {
  readonly #nodes: (Buffer | undefined)[] = []
  #size = 0
  get size(): number {
    return this.#size
  }

  /** Adds one leaf. The root of the block it completes, if it does. */
  add(leaf: Buffer): Buffer | undefined {
    return this.#carry(leaf, 0)
  }
  /** Adds a whole block at once; the size must be a multiple of the block then. */
  addBlock(root: Buffer): void {
    if (this.#size % BLOCK !== 0) throw new Error(`a block cannot follow ${this.#size} leaves`)
    this.#carry(root, BLOCK_LEVEL)
  }
  root(): Buffer {
    let found: Buffer | undefined
    for (const node of this.#nodes) if (node) found = found ? nodeOf(node, found) : node
    return found ?? EMPTY
  }

  #carry(added: Buffer, from: number): Buffer | undefined {
    let node = added
    let level = from
    let block: Buffer | undefined
    for (;;) {
      if (level === BLOCK_LEVEL) block = node
      const left = this.#nodes[level]
      if (!left) break
      this.#nodes[level++] = undefined
      node = nodeOf(left, node)
    }
    this.#nodes[level] = node
    this.#size += 2 ** from
    return block
  }
}

/**
 * What a proof is made of: the leaves near an entry and near the end, and the roots of whole blocks. Both by position.
 */
export interface Parts {
  leaf(position: number): Buffer
  block(position: number): Buffer
}

/** The audit path of a leaf in a tree of this size, nearest first (RFC 6962, 2.1.1). */
export function proofOf(position: number, size: number, parts: Parts): Buffer[] {
  const path: Buffer[] = []
  let [start, end] = [0, size]
  while (end - start > 1) {
    const middle = start + largestPowerBelow(end - start)
    if (position < middle) {
      path.unshift(rootOf(middle, end, parts))
      end = middle
    } else {
      path.unshift(rootOf(start, middle, parts))
      start = middle
    }
  }
  return path
}
function rootOf(start: number, end: number, parts: Parts): Buffer {
  if (end - start === 1) return parts.leaf(start)
  if (end - start === BLOCK && start % BLOCK === 0) return parts.block(start / BLOCK)
  const middle = start + largestPowerBelow(end - start)
  return nodeOf(rootOf(start, middle, parts), rootOf(middle, end, parts))
}
function largestPowerBelow(count: number): number {
  let power = 1
  while (power * 2 < count) power *= 2
  return power
}

/**
 * The root that a proof leads to: equal to that of a signed checkpoint, it proves that the checkpoint covers the entry.
 */
export function rootFrom(position: number, size: number, leaf: Buffer, path: readonly Buffer[]): Buffer | undefined {
  if (position >= size) return undefined
  let [node, last, current] = [position, size - 1, leaf]
  for (const side of path) {
    if (last === 0) return undefined
    if (node % 2 === 1 || node === last) {
      current = nodeOf(side, current)
      while (node % 2 === 0 && node !== 0) {
        node = Math.floor(node / 2)
        last = Math.floor(last / 2)
      }
    } else current = nodeOf(current, side)
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 ? current : undefined
}
