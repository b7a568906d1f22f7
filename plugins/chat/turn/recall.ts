import * as v from 'valibot'
import type { Effect } from '../../journal/contract.ts'
import { LABELS } from '../../sessions/contract.ts'
import type { Message } from '../../sessions/contract.ts'
import type { LoopInput, Outcome } from './loop.ts'
import { effectKey } from './record.ts'

/** The effects of a turn, as the journal has them. */
export type Effects = (turnId: string) => Promise<readonly Effect[]>
const Recorded = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    text: v.string(),
    failed: v.boolean(),
    labels: v.exactOptional(v.array(v.picklist(LABELS))),
  }),
)
const UNKNOWN =
  'unknown: the service stopped while this call was running, so it may or may not have had its effect. It was not run again. Check before you repeat it.'

/** Where a turn of an earlier process stood: how often the model was called, and which calls are open with what is known of them. */
export async function recall(
  effects: Effects,
  turnId: string,
  messages: readonly Message[],
  waited: boolean,
): Promise<Pick<LoopInput, 'iterations' | 'pending' | 'earlier'>> {
  const own = messages.filter((message) => message.turnId === turnId)
  const iterations = own.filter(({ role }) => role === 'assistant').length
  const calls = openCalls(own)
  const earlier = answered(own)
  if (calls.length === 0) return { iterations, earlier }
  return {
    iterations,
    earlier,
    pending: {
      calls,
      known: await outcomes(
        effects,
        turnId,
        calls.map(({ id }) => id),
        waited,
      ),
    },
  }
}

/** The calls of a turn that have results, with what the tool answered. */
function answered(messages: readonly Message[]): NonNullable<LoopInput['earlier']> {
  const blocks = messages.flatMap((message) => message.blocks)
  const results = new Map(
    blocks.flatMap((block) => (block.type === 'result' ? [[block.callId, block.text] as const] : [])),
  )
  return blocks.flatMap((block) => {
    const text = block.type === 'call' ? results.get(block.id) : undefined
    return block.type === 'call' && text !== undefined
      ? [{ tool: block.tool, args: block.args, text: text.replace(/\n\n\[warning: [^\n]*\]$/, '') }]
      : []
  })
}

/** The calls of a turn's last message that have no results. */
export function openCalls(messages: readonly Message[]) {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return []
  return last.blocks.flatMap((block) =>
    block.type === 'call' ? [{ id: block.id, name: block.tool, args: block.args }] : [],
  )
}

/** `waited`: the turn stood before a gate, so what has no receipt had not begun, or only read; it is left out and may be done now. */
export async function outcomes(
  effects: Effects,
  turnId: string,
  callIds: readonly string[],
  waited = false,
): Promise<ReadonlyMap<string, Outcome>> {
  const recorded = new Map((await effects(turnId)).map((effect) => [effect.key, effect]))
  return new Map(
    callIds.flatMap((id): [string, Outcome][] => {
      const effect = recorded.get(effectKey(turnId, id))
      const settled = effect?.state === 'done' || effect?.state === 'failed' ? effect.result : undefined
      if (settled !== undefined) return [[id, v.parse(Recorded, settled)]]
      return waited ? [] : [[id, { text: UNKNOWN, failed: true }]]
    }),
  )
}
