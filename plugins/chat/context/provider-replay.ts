import type { Turn } from 'svc/providers'
import type { ResolvedModel } from '../../providers/contract.ts'

type Of = Pick<ResolvedModel, 'provider' | 'model'>
/** A provider that wants more than this back is not given it; what it said stays. In characters. */
const MOST_REPLAY = 1_048_576

/** What a provider wants back, marked with who wants it: nobody else may be given it. Too much of it is `''`. */
export function tagReplay(of: Of, replay: string): string {
  return replay.length > MOST_REPLAY ? '' : mark(of) + replay
}

/** The same turns; those that carry something for the model that is asked now carry it plainly, and what is for another one is gone. */
export function untagReplay(of: Of, turns: readonly Turn[]): readonly Turn[] {
  if (!turns.some((turn) => turn.role === 'assistant' && turn.replay !== undefined)) return turns
  const own = mark(of)
  return turns.map((turn): Turn => {
    if (turn.role !== 'assistant' || turn.replay === undefined) return turn
    const { replay, ...plain } = turn
    return replay.startsWith(own) ? { ...plain, replay: replay.slice(own.length) } : plain
  })
}

function mark({ provider, model }: Of): string {
  return `${provider}/${model}\n`
}
