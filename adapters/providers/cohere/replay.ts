import * as v from 'valibot'
import { readJson } from 'svc/sdk'

/** Plan and thinking of an answer with calls. Cohere requires them back within the same turn. */
const Replay = v.object({ plan: v.string(), thinking: v.string() })
export type Replay = v.InferOutput<typeof Replay>

export function writeReplay(replay: Replay): string | undefined {
  return replay.plan === '' && replay.thinking === '' ? undefined : JSON.stringify(replay)
}
export function readReplay(text: string | undefined): Replay | undefined {
  if (!text) return undefined
  let data: unknown
  try {
    data = readJson(text)
  } catch {
    return undefined /* the replay of another provider */
  }
  const read = v.safeParse(Replay, data)
  return read.success ? read.output : undefined
}
