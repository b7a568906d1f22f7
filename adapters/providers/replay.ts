import * as v from 'valibot'
import type { ToolCall } from './completion.ts'

/** A text by its number of characters, or a call by its index. */
const Position = v.union([v.object({ text: v.number() }), v.object({ call: v.number() })])
export type ReplayPosition = v.InferOutput<typeof Position>

/** How an answer is stored for the vendor to be sent back. */
export interface ReplayFormat<Thought> {
  /** `undefined` when the answer contains no thinking: then nothing has to be sent back. */
  write(pieces: readonly (Thought | ReplayPosition)[]): string | undefined
  /**
   * The content of an answer in its original order. `undefined` when the replay does not match the answer: then the
   * positions of the thinking are unknown, and it is left out.
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
 * For vendors that sign thinking: it has to be sent back unchanged, in its position between text and calls.
 * `thought` is the schema of one piece of thinking.
 */
export function replayFormat<S extends v.GenericSchema<unknown, object>>(thought: S): ReplayFormat<v.InferOutput<S>> {
  type Thought = v.InferOutput<S>
  const Pieces = v.pipe(v.string(), v.parseJson(), v.array(v.union([thought, Position])))
  return {
    write: (pieces) => (pieces.every((piece) => v.is(Position, piece)) ? undefined : JSON.stringify(pieces)),
    read(replay, answer, as) {
      const pieces = v.safeParse(Pieces, replay)
      if (!pieces.success) return undefined
      let at = 0
      let calls = 0
      const content = []
      for (const piece of pieces.output) {
        if (!v.is(Position, piece)) content.push(as.thought(piece as Thought))
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
