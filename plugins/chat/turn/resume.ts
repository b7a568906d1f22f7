import * as v from 'valibot'
import type { ToolCall } from 'svc/providers'
import type { Journal, Turn } from '../../journal/contract.ts'
import { LABELS } from '../../sessions/contract.ts'
import type { Message, Sessions } from '../../sessions/contract.ts'
import { LiveTurn, readOptions } from './live-turn.ts'
import type { LoopInput } from './loop.ts'
import type { AnsweredCall, Outcome } from './tool-step.ts'
import { effectKey, ONE_CALL } from './record.ts'
import type { Fenced, TurnRecord } from './record.ts'

export const INTERRUPTED = '[Interrupted: the service stopped before this was answered.]'
const UNKNOWN =
  'unknown: the service stopped while this call was running, so it may or may not have had its effect. ' +
  'It was not run again. Check before you repeat it.'

/** The result of an effect of kind `tool`. */
export const Receipt = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    text: v.string(),
    failed: v.boolean(),
    labels: v.exactOptional(v.array(v.picklist(LABELS))),
  }),
)

export interface RecoveryDeps {
  readonly journal: Journal
  readonly sessions: Sessions
  readonly record: TurnRecord
}

/** Handles the turns of an earlier process: marks those whose caller is gone and returns the others, which resume. */
export async function recoverTurns(
  deps: RecoveryDeps,
  turns: readonly (Turn & Fenced)[],
): Promise<readonly LiveTurn[]> {
  const resumed: LiveTurn[] = []
  for (const turn of turns) {
    const waiting = turn.state === 'waiting'
    if (turn.options === ONE_CALL) await endCall(deps, turn)
    else if (turn.onCrash === 'interrupt' && !waiting) await markInterrupted(deps, turn)
    else {
      const live = new LiveTurn({
        ...turn,
        options: readOptions(turn.options),
        resumed: true,
        resumable: true,
        waiting,
      })
      live.fence = turn.fence ?? []
      resumed.push(live)
    }
  }
  return resumed
}

/** Whoever made the call finds in its effect that nobody knows how it ended. */
export async function endCall({ record }: Pick<RecoveryDeps, 'record'>, turn: Turn & Fenced): Promise<void> {
  await record.commit(turn, record.ended(turn, 'interrupted', 'the service stopped during the call of a tool'))
}

async function markInterrupted({ journal, sessions, record }: RecoveryDeps, turn: Turn & Fenced): Promise<void> {
  const calls = openCalls(await sessions.turn(turn.sessionId, turn.id))
  const known = await recordedOutcomes(journal, turn.id, calls)
  const results = calls.map((call) => ({
    call,
    outcome: known.get(call.id) ?? { text: UNKNOWN, failed: true },
  }))
  await record.commit(turn, [
    ...(results.length === 0 ? [] : record.toolResults(turn, results)),
    ...record.answer(turn, { text: INTERRUPTED }, [], 'interrupted'),
    ...record.ended(turn, 'interrupted', 'the service stopped before it was answered'),
  ])
}

export interface ResumePoint extends Pick<LoopInput, 'iterations' | 'pending' | 'earlier'> {
  /** Open calls that may have begun: nobody knows whether they had their effect. */
  readonly cut?: readonly ToolCall[]
}

/**
 * Where a turn stands by its rows: how often it called the model, its answered calls, and its open ones. One of these
 * that has not begun may run now.
 */
export async function resumePoint(
  journal: Pick<Journal, 'effects'>,
  turnId: string,
  messages: readonly Message[],
  mayHaveBegun: (callId: string) => boolean,
): Promise<ResumePoint> {
  const own = messages.filter((message) => message.turnId === turnId)
  const iterations = own.filter(({ role }) => role === 'assistant').length
  const calls = openCalls(own)
  const earlier = answeredCalls(own)
  if (calls.length === 0) return { iterations, earlier }
  const known = await recordedOutcomes(journal, turnId, calls)
  const cut = calls.filter(({ id }) => !known.has(id) && mayHaveBegun(id))
  return { iterations, earlier, pending: { calls, known }, cut }
}

/** The calls of a turn that have results, with the text of the result. */
function answeredCalls(messages: readonly Message[]): readonly AnsweredCall[] {
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
function openCalls(messages: readonly Message[]) {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return []
  return last.blocks.flatMap((block) =>
    block.type === 'call' ? [{ id: block.id, name: block.tool, args: block.args }] : [],
  )
}

/** The outcomes of calls that have a receipt, by call id. */
async function recordedOutcomes(
  journal: Pick<Journal, 'effects'>,
  turnId: string,
  calls: readonly { readonly id: string }[],
): Promise<ReadonlyMap<string, Outcome>> {
  if (calls.length === 0) return new Map()
  const recorded = new Map((await journal.effects(turnId)).map((effect) => [effect.key, effect.result]))
  return new Map(
    calls.flatMap(({ id }): [string, Outcome][] => {
      const receipt = recorded.get(effectKey(turnId, id))
      return receipt === undefined ? [] : [[id, v.parse(Receipt, receipt)]]
    }),
  )
}
