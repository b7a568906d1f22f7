import { readJson } from 'svc/sdk'
import type { ToolCall } from './completion.ts'
import type { StreamedText } from './streamed-text.ts'

/** Arguments that grow beyond this are a fault of the vendor. In characters. */
const MAX_ARGS = 8_388_608
const MAX_CALLS = 256

/** A call whose arguments are still arriving. */
export interface OpenCall {
  id: string | undefined
  name: string
  args: string
  /** Arguments that the vendor sent parsed; used unless text follows. */
  input?: unknown
}

/** Collects the calls of one answer from their pieces, by their index. */
export class ToolCallBuilder {
  readonly #text: StreamedText
  readonly #calls = new Map<number, OpenCall>()

  constructor(text: StreamedText) {
    this.#text = text
  }

  get size(): number {
    return this.#calls.size
  }
  get(index: number): OpenCall | undefined {
    return this.#calls.get(index)
  }
  /** The call of this index; a new one if there is none. */
  open(index: number, call: Partial<OpenCall> = {}): OpenCall {
    const existing = this.#calls.get(index)
    if (existing) return existing
    if (this.#calls.size >= MAX_CALLS) throw this.#text.malformed(`made more than ${MAX_CALLS} tool calls at once`)
    const opened: OpenCall = { id: undefined, name: '', args: '', ...call }
    this.#calls.set(index, opened)
    return opened
  }
  append(call: OpenCall, piece: string): void {
    call.args += piece
    if (call.args.length > MAX_ARGS) throw this.#text.malformed('sent endless arguments of a tool call')
  }
  /** Removes a call that is incomplete. */
  drop(index: number): void {
    this.#calls.delete(index)
  }
  /** The indexes of all calls, in order. */
  indexes(): readonly number[] {
    return [...this.#calls.keys()].sort((a, b) => a - b)
  }

  /** All calls in order, counted as output. Results refer to calls by id, so ids are made unique. */
  end(): readonly ToolCall[] {
    const used = new Set<string>()
    return this.indexes().map((index) => {
      const { id, name, args, input } = this.#calls.get(index) ?? this.open(index)
      this.#text.chars += name.length + (args || JSON.stringify(input ?? '')).length
      const preferred = id || `call_${index}`
      let unique = preferred
      for (let copy = 2; used.has(unique); copy++) unique = `${preferred}_${copy}`
      used.add(unique)
      return { id: unique, name, args: args.trim() === '' ? (input ?? {}) : readArgs(args) }
    })
  }
}

/**
 * The arguments a model wrote: parsed when they are JSON, `{}` when they are blank, or else the raw text, so that the
 * parser of the tool explains to the model what is wrong.
 */
export function readArgs(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return readJson(text)
  } catch {
    return text /* the tool's parser reports it */
  }
}
