import * as v from 'valibot'
import type { ToolCall } from 'svc/providers'

/**
 * The blocks of an answer in their order: what was thought as it was given, with its signature, and where text and calls stood between.
 * Signed thinking has to come back unchanged and in its place.
 */
const Piece = v.union([
  v.object({ type: v.literal('thinking'), thinking: v.string(), signature: v.string() }),
  v.object({ type: v.literal('redacted_thinking'), data: v.string() }),
  v.object({ text: v.number() }),
  v.object({ call: v.number() }),
])
export type Piece = v.InferOutput<typeof Piece>
const Pieces = v.pipe(v.string(), v.parseJson(), v.array(Piece))

/** What has to be given back, or `undefined` when nothing was thought. */
export function toReplay(pieces: readonly Piece[]): string | undefined {
  return pieces.some((piece) => 'type' in piece) ? JSON.stringify(pieces) : undefined
}

/**
 * The content of an answer in the order it was given in, or `undefined` when this is not how the answer was: then it cannot be said where
 * the thinking belongs, and it is left out.
 */
export function fromReplay<T>(
  replay: string,
  answer: { readonly text: string; readonly calls: readonly ToolCall[] },
  as: {
    readonly thought: (piece: Extract<Piece, { type: string }>) => T
    readonly text: (text: string) => T
    readonly call: (call: ToolCall) => T
  },
): readonly T[] | undefined {
  const read = v.safeParse(Pieces, replay)
  if (!read.success) return undefined
  const blocks: T[] = []
  let at = 0
  let calls = 0
  for (const piece of read.output) {
    if ('type' in piece) blocks.push(as.thought(piece))
    else if ('text' in piece) blocks.push(as.text(answer.text.slice(at, (at += piece.text))))
    else {
      const call = answer.calls[piece.call]
      if (!call || piece.call !== calls++) return undefined
      blocks.push(as.call(call))
    }
  }
  return at === answer.text.length && calls === answer.calls.length ? blocks : undefined
}
