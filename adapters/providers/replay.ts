import * as v from 'valibot'
import type { ToolCall } from './completion.ts'

/** Where text stood, as its number of characters, and where a call stood, as its number. */
const Place = v.union([v.object({ text: v.number() }), v.object({ call: v.number() })])
export type ReplayPlace = v.InferOutput<typeof Place>

/** An answer as its vendor wants it back. */
export interface ReplayFormat<Thought> {
  /** What has to be given back, or `undefined` when nothing was thought. */
  write(pieces: readonly (Thought | ReplayPlace)[]): string | undefined
  /**
   * The content of an answer in the order it was given in, or `undefined` when this is not how the answer was: then
   * it cannot be said
   * where the thinking belongs, and it is left out.
   */
  read<T>(
    replay: string,
    answer: { readonly text: string; readonly calls: readonly ToolCall[] },
    as: {
      readonly thought: (thought: Thought) => T
      readonly text: (text: string) => T
      readonly call: (call: ToolCall) => T
    },
  ): readonly T[] | undefined
}

/**
 * For vendors that sign what their model thought: it has to come back unchanged and in its place between text and
 * calls. `thought` is the
 * schema of one piece of thinking.
 */
export function replayFormat<S extends v.GenericSchema<unknown, object>>(thought: S): ReplayFormat<v.InferOutput<S>> {
  type Thought = v.InferOutput<S>
  const Pieces = v.pipe(v.string(), v.parseJson(), v.array(v.union([thought, Place])))
  return {
    write: (pieces) => (pieces.every((piece) => v.is(Place, piece)) ? undefined : JSON.stringify(pieces)),
    read(replay, answer, as) {
      const pieces = v.safeParse(Pieces, replay)
      if (!pieces.success) return undefined
      let at = 0
      let calls = 0
      const content = []
      for (const piece of pieces.output) {
        if (!v.is(Place, piece)) content.push(as.thought(piece as Thought))
        else if ('text' in piece) content.push(as.text(answer.text.slice(at, (at += piece.text))))
        else {
          const call = answer.calls[piece.call]
          if (!call || piece.call !== calls++) return undefined
          content.push(as.call(call))
        }
      }
      return at === answer.text.length && calls === answer.calls.length ? content : undefined
    },
  }
}
