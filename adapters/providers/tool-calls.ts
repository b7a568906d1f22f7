import { readJson } from 'svc/sdk'
import type { ToolCall } from './completion.ts'
import type { StreamedText } from './streamed-text.ts'

/** Arguments of one call that grow over this are a fault of the vendor. In characters. */
const MAX_ARGS = 8_388_608
const MAX_CALLS = 256

/** A call whose arguments are still arriving. */
export interface OpenCall {
  id: string | undefined
  name: string
  args: string
  /** Arguments that came parsed; they stand unless text follows. */
  input?: unknown
}

/** Collects the calls of one answer from their pieces, by their place in it. */
export class ToolCallBuilder {
  readonly #text: StreamedText
  readonly #calls = new Map<number, OpenCall>()

  constructor(text: StreamedText) {
    this.#text = text
  }

  get size(): number {
    return this.#calls.size
  }
  get(place: number): OpenCall | undefined {
    return this.#calls.get(place)
  }
  /** The call at this place, a new one if there is none. */
  open(place: number, call: Partial<OpenCall> = {}): OpenCall {
    const existing = this.#calls.get(place)
    if (existing) return existing
    if (this.#calls.size >= MAX_CALLS) throw this.#text.malformed(`made more than ${MAX_CALLS} tool calls at once`)
    const opened: OpenCall = { id: undefined, name: '', args: '', ...call }
    this.#calls.set(place, opened)
    return opened
  }
  append(call: OpenCall, piece: string): void {
    call.args += piece
    if (call.args.length > MAX_ARGS) throw this.#text.malformed('sent arguments of a tool call that have no end')
  }
  /** Forgets a call that was begun and cannot be used. */
  drop(place: number): void {
    this.#calls.delete(place)
  }
  /** The places of all calls, in order. */
  places(): readonly number[] {
    return [...this.#calls.keys()].sort((a, b) => a - b)
  }

  /** All calls in order, counted as output. Results are found by id, so each gets one and no two share it. */
  end(): readonly ToolCall[] {
    const used = new Set<string>()
    return this.places().map((place) => {
      const { id, name, args, input } = this.#calls.get(place) ?? this.open(place)
      this.#text.chars += name.length + (args || JSON.stringify(input ?? '')).length
      const wanted = id || `call_${place}`
      let unique = wanted
      for (let copy = 2; used.has(unique); copy++) unique = `${wanted}_${copy}`
      used.add(unique)
      return { id: unique, name, args: args.trim() === '' ? (input ?? {}) : readArgs(args) }
    })
  }
}

/**
 * Arguments as a model wrote them: parsed when they are JSON, `{}` for nothing, else the raw text, so that the tool's
 * own parser tells the model what is wrong.
 */
export function readArgs(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return readJson(text)
  } catch {
    return text /* as said above */
  }
}
