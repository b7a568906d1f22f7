import * as v from 'valibot'
import type { ToolCall } from 'svc/providers'
import { WirePart } from './wire.ts'
import { readJson } from 'svc/sdk'

/**
 * What an answer with calls has to be given back with: its parts as they came, because the signature of a thought
 * belongs to one of them.
 */
const Replay = v.object({ parts: v.array(WirePart) })

/** `undefined` when nothing in the answer is signed. A summary of a thought is not asked for again. */
export function writeReplay(parts: readonly WirePart[]): string | undefined {
  if (!parts.some(({ thoughtSignature }) => thoughtSignature)) return undefined
  return JSON.stringify({ parts: parts.filter(({ thought, thoughtSignature }) => !thought || thoughtSignature) })
}

/**
 * The parts of an answer, when they are still those of its calls: a call that was dropped since would leave a
 * signature without its thought.
 */
export function readReplay(replay: string | undefined, calls: readonly ToolCall[]): readonly WirePart[] | undefined {
  if (!replay) return undefined
  let data: unknown
  try {
    data = readJson(replay)
  } catch {
    return undefined /* not ours: the answer is put together from what it said */
  }
  const read = v.safeParse(Replay, data)
  if (!read.success) return undefined
  const names = read.output.parts.flatMap(({ functionCall }) => (functionCall ? [functionCall.name] : []))
  return names.length === calls.length && names.every((name, index) => name === calls[index]?.name)
    ? read.output.parts
    : undefined
}
