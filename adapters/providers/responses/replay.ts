import * as v from 'valibot'
import type { ToolCall } from 'svc/providers'
import { Thought } from './wire.ts'

/** An answer in its order: what was thought, as it was given, and where text and calls stood between. What was thought has to come back in its place. */
const Piece = v.union([Thought, v.object({ text: v.number() }), v.object({ call: v.number() })])
export type Piece = v.InferOutput<typeof Piece>
const Pieces = v.pipe(v.string(), v.parseJson(), v.array(Piece))

/** What has to be given back, or `undefined` when nothing was thought. */
export function toReplay(pieces: readonly Piece[]): string | undefined {
  return pieces.some((piece) => 'type' in piece) ? JSON.stringify(pieces) : undefined
}

/** The items of an answer in the order it was given in, or `undefined` when this is not how the answer was: then what was thought is left out. */
export function fromReplay<T>(
  replay: string,
  answer: { readonly text: string; readonly calls: readonly ToolCall[] },
  as: {
    readonly text: (text: string) => T
    readonly call: (call: ToolCall) => T
  },
): readonly (T | Thought)[] | undefined {
  const read = v.safeParse(Pieces, replay)
  if (!read.success) return undefined
  const items: (T | Thought)[] = []
  let at = 0
  let calls = 0
  for (const piece of read.output) {
    if ('type' in piece) items.push(piece)
    else if ('text' in piece) items.push(as.text(answer.text.slice(at, (at += piece.text))))
    else {
      const call = answer.calls[piece.call]
      if (!call || piece.call !== calls++) return undefined
      items.push(as.call(call))
    }
  }
  return at === answer.text.length && calls === answer.calls.length ? items : undefined
}
