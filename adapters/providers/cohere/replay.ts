import * as v from 'valibot'
import { readJson } from 'svc/sdk'

/** What an answer with calls thought and planned, which Cohere wants back with it while its turn goes on. */
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
    return undefined /* not ours */
  }
  const read = v.safeParse(Replay, data)
  return read.success ? read.output : undefined
}
