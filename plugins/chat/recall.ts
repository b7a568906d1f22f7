import * as v from 'valibot'
import type { Effect } from '../journal/contract.ts'
import type { Message } from '../sessions/contract.ts'
import type { LoopInput, Outcome } from './loop.ts'
import { effectKey } from './record.ts'

/** The effects of a turn, as the journal has them. */
export type Effects = (turnId: string) => Promise<readonly Effect[]>
const Recorded = v.pipe(v.string(), v.parseJson(), v.object({ text: v.string(), failed: v.boolean() }))
const UNKNOWN = 'unknown: the service stopped while this call was running, so it may or may not have had its effect. It was not run again. Check before you repeat it.'

/** Where a turn of an earlier process stood: how often the model was called, and which calls are open with what is known of them. */
export async function recall(effects: Effects, turnId: string, messages: readonly Message[]): Promise<Pick<LoopInput, 'iterations' | 'pending'>> {
  const own = messages.filter((message) => message.turnId === turnId)
  const iterations = own.filter(({ role }) => role === 'assistant').length
  const calls = openCalls(own)
  if (calls.length === 0) return { iterations }
  return { iterations, pending: { calls, known: await outcomes(effects, turnId, calls.map(({ id }) => id)) } }
}

/** The calls of a turn's last message that have no results. */
export function openCalls(messages: readonly Message[]) {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return []
  return last.blocks.flatMap((block) => (block.type === 'call' ? [{ id: block.id, name: block.tool, args: block.args }] : []))
}

export async function outcomes(effects: Effects, turnId: string, callIds: readonly string[]): Promise<ReadonlyMap<string, Outcome>> {
  const recorded = new Map((await effects(turnId)).map((effect) => [effect.key, effect]))
  return new Map(callIds.map((id) => {
    const effect = recorded.get(effectKey(turnId, id))
    const settled = effect?.state === 'done' || effect?.state === 'failed' ? effect.result : undefined
    return [id, settled === undefined ? { text: UNKNOWN, failed: true } : v.parse(Recorded, settled)]
  }))
}
