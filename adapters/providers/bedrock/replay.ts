import * as v from 'valibot'
import type { ToolCall } from 'svc/providers'

/**
 * The blocks of an answer in their order: what was thought as it was given, with its signature, and where text and calls stood between.
 * Signed thinking has to come back unchanged and in its place.
 */
const Piece = v.union([
  v.object({ reasoningText: v.object({ text: v.string(), signature: v.optional(v.string()) }) }),
  /** Base64. */
  v.object({ redactedContent: v.string() }),
  v.object({ text: v.number() }),
  v.object({ call: v.number() }),
])
export type Piece = v.InferOutput<typeof Piece>
const Pieces = v.pipe(v.string(), v.parseJson(), v.array(Piece))

/** What has to be given back, or `undefined` when nothing was thought. */
export function toReplay(pieces: readonly Piece[]): string | undefined {
  return pieces.some((piece) => 'reasoningText' in piece || 'redactedContent' in piece)
    ? JSON.stringify(pieces)
    : undefined
}

/** The content of an answer in the order it was given in, or `undefined` when this is not how the answer was: then the thinking is left out. */
export function fromReplay(
  replay: string,
  answer: { readonly text: string; readonly calls: readonly ToolCall[] },
  call: (call: ToolCall) => object,
): readonly object[] | undefined {
  const read = v.safeParse(Pieces, replay)
  if (!read.success) return undefined
  const blocks: object[] = []
  let at = 0
  let calls = 0
  for (const piece of read.output) {
    if ('text' in piece) blocks.push({ text: answer.text.slice(at, (at += piece.text)) })
    else if ('call' in piece) {
      const made = answer.calls[piece.call]
      if (!made || piece.call !== calls++) return undefined
      blocks.push(call(made))
    } else blocks.push({ reasoningContent: piece })
  }
  return at === answer.text.length && calls === answer.calls.length ? blocks : undefined
}
