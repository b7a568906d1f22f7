import * as v from 'valibot'
import type { ToolCall } from 'svc/providers'
import { WirePart } from './wire.ts'
import { readJson } from 'svc/sdk'

/** An answer with calls is sent back as the parts it came in, because a thought signature belongs to one part. */
const Replay = v.object({ parts: v.array(WirePart) })

/** `undefined` when no part is signed. Summaries of thoughts are left out. */
export function writeReplay(parts: readonly WirePart[]): string | undefined {
  if (!parts.some(({ thoughtSignature }) => thoughtSignature)) return undefined
  return JSON.stringify({ parts: parts.filter(({ thought, thoughtSignature }) => !thought || thoughtSignature) })
}

/**
 * The parts of an answer, when they still match its calls: a call that was dropped since would leave a signature
 * without its thought.
 */
export function readReplay(replay: string | undefined, calls: readonly ToolCall[]): readonly WirePart[] | undefined {
  if (!replay) return undefined
  let data: unknown
  try {
    data = readJson(replay)
  } catch {
    return undefined /* the replay of another provider: the answer is encoded from its text and calls */
  }
  const read = v.safeParse(Replay, data)
  if (!read.success) return undefined
  const names = read.output.parts.flatMap(({ functionCall }) => (functionCall ? [functionCall.name] : []))
  return names.length === calls.length && names.every((name, index) => name === calls[index]?.name)
    ? read.output.parts
    : undefined
}
