import { AnswerDecoder } from './answer-decoder.ts'
import type { ReplayPosition } from './replay.ts'
import type { OpenCall } from './tool-calls.ts'

/** A block that grows beyond this is a fault of the vendor. In characters. */
const MAX_BLOCK = 8_388_608
const MAX_BLOCKS = 1024

export type ThinkingBlock =
  | { readonly kind: 'thinking'; text: string; signature: string | undefined }
  | { readonly kind: 'redacted'; data: string }
/** `ignored`: content that is not part of the answer. */
type Block =
  | { readonly kind: 'ignored' }
  | { readonly kind: 'text'; chars: number }
  | { readonly kind: 'call' }
  | ThinkingBlock

/**
 * Decodes answers of numbered blocks of text, thinking and calls. A block begins with its start event or, where a
 * vendor leaves that out, with its first delta. A delta for a block of another kind is skipped.
 */
export abstract class BlockDecoder extends AnswerDecoder {
  readonly #blocks: (Block | undefined)[] = []

  protected openBlock(index: number, block: Block): void {
    if (!Number.isInteger(index) || index < 0 || index >= MAX_BLOCKS)
      throw this.text.malformed(`sent an answer of more than ${MAX_BLOCKS} blocks`)
    this.#blocks[index] = block
  }
  protected openCall(index: number, call: Partial<OpenCall>): void {
    this.openBlock(index, { kind: 'call' })
    this.calls.open(index, call)
  }

  protected addText(index: number, text: string): void {
    const block = this.#blocks[index] ?? this.#begin(index, { kind: 'text', chars: 0 })
    if (block.kind !== 'text') return this.#mismatch(block)
    this.text.hasEvents = true
    block.chars += text.length
    this.text.addText(text)
  }
  protected addThinking(index: number, text: string): void {
    const block = this.thinkingAt(index)
    if (!block || text === '') return
    block.text += text
    this.text.addThinking(text)
    if (block.text.length > MAX_BLOCK) throw this.text.malformed('sent thinking that has no end')
  }
  /** The thinking block of this number; `undefined` when the block is of another kind. */
  protected thinkingAt(index: number): Extract<Block, { kind: 'thinking' }> | undefined {
    const block = this.#blocks[index] ?? this.#begin(index, { kind: 'thinking', text: '', signature: undefined })
    if (block.kind === 'thinking') return block
    this.#mismatch(block)
    return undefined
  }
  protected addRedacted(index: number, data: string): void {
    const block = this.#blocks[index] ?? this.#begin(index, { kind: 'redacted', data: '' })
    if (block.kind === 'redacted') block.data += data
    else this.#mismatch(block)
  }
  protected addArguments(index: number, piece: string): void {
    const call = this.calls.get(index)
    if (call) this.calls.append(call, piece)
    else this.#mismatch(this.#blocks[index])
  }

  /** All blocks in order, for the replay. */
  protected pieces<Thought>(toThought: (block: ThinkingBlock) => Thought): readonly (Thought | ReplayPosition)[] {
    let calls = 0
    return this.#blocks.flatMap((block): (Thought | ReplayPosition)[] => {
      if (!block || block.kind === 'ignored') return []
      if (block.kind === 'text') return [{ text: block.chars }]
      return block.kind === 'call' ? [{ call: calls++ }] : [toThought(block)]
    })
  }

  #begin(index: number, block: Block): Block {
    this.openBlock(index, block)
    return block
  }
  #mismatch(block: Block | undefined): void {
    if (block?.kind !== 'ignored') this.text.skip()
  }
}
