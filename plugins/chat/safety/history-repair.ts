import { enforced } from 'svc/internal'
import type { Part, ToolCall, Turn } from 'svc/providers'
import { isBinary, isEmpty, isSound, MAX_RESULT_CHARS } from './sound-history.ts'
import type { Result } from './sound-history.ts'

/** How many defects of each kind were repaired. */
export interface RepairReport {
  readonly orphanResults: number
  readonly empty: number
  readonly moved: number
  readonly duplicateResults: number
  readonly synthetic: number
  readonly merged: number
  readonly leading: number
  readonly oversize: number
}
interface Slot {
  readonly call: ToolCall
  readonly place: number
  result: Result | undefined
}

export const UNANSWERED = 'interrupted: this call has no recorded result, and it is not known whether it ran'
const RESULT_NOTE = '\n[cut: the result was longer]'

const NOTHING_REPAIRED = {
  orphanResults: 0,
  empty: 0,
  moved: 0,
  duplicateResults: 0,
  synthetic: 0,
  merged: 0,
  leading: 0,
  oversize: 0,
}

/**
 * Makes a history that every provider accepts: one result directly after each call, no empty messages, no two
 * neighbours of the same role, a user's message first. The stored messages stay unchanged. A second repair changes
 * nothing.
 */
export function repair(turns: readonly Turn[]): { readonly turns: readonly Turn[]; readonly report: RepairReport } {
  if (isSound(turns)) return { turns: turns.slice(), report: NOTHING_REPAIRED }
  const report = { ...NOTHING_REPAIRED }
  // Most histories have no calls.
  const slots = turns.some((turn) => turn.role === 'tool' || (turn.role === 'assistant' && turn.calls.length > 0))
    ? matchResults(turns, report)
    : NO_CALLS
  const kept: Turn[] = []
  let merged: Merged | undefined
  for (let place = 0; place < turns.length; place++) {
    const turn = turns[place]
    if (!turn || turn.role === 'tool') continue
    if (isEmpty(turn)) {
      report.empty++
      continue
    }
    merged = add(kept, turn, merged, report)
    for (const slot of slots.get(place) ?? NO_SLOTS) {
      if (!slot.result) report.synthetic++
      kept.push(
        slot.result
          ? shorten(slot.result, report)
          : { role: 'tool', callId: slot.call.id, tool: slot.call.name, text: UNANSWERED, failed: true },
      )
    }
  }
  let first = 0
  while (first < kept.length && kept[first]?.role !== 'user') first++
  report.leading = first
  if (
    report.orphanResults +
      report.moved +
      report.duplicateResults +
      report.synthetic +
      report.leading +
      report.oversize >
    0
  )
    enforced('session_repair')
  return { turns: first === 0 ? kept : kept.slice(first), report }
}

/** Before the first message that is no result. */
const NO_CALLER = -1
const NO_SLOTS: readonly Slot[] = []
const NO_CALLS: ReadonlyMap<number, readonly Slot[]> = new Map()

/** Matches the calls of each assistant message with their results. A later message may use the same ids again. */
function matchResults(
  turns: readonly Turn[],
  report: { orphanResults: number; moved: number; duplicateResults: number },
): ReadonlyMap<number, readonly Slot[]> {
  const byPlace = new Map<number, Slot[]>()
  const latest = new Map<string, Slot[]>()
  const early: Result[] = []
  let caller = NO_CALLER
  for (const [place, turn] of turns.entries()) {
    if (turn.role === 'tool') {
      const slots = latest.get(turn.callId)
      if (!slots) early.push(turn)
      else if (!fill(slots, turn, caller, report)) report.duplicateResults++
      continue
    }
    caller = place
    if (turn.role !== 'assistant' || turn.calls.length === 0) continue
    const own = turn.calls.map((call): Slot => ({ call, place, result: undefined }))
    byPlace.set(place, own)
    for (const slot of own) {
      const same = latest.get(slot.call.id)
      if (same?.[0]?.place === place) same.push(slot)
      else latest.set(slot.call.id, [slot])
    }
  }
  for (const result of early)
    if (!fill(latest.get(result.callId) ?? NO_SLOTS, result, NO_CALLER, report)) report.orphanResults++
  return byPlace
}
/** Gives a result to the first call without one. `false` when every call has its result. */
function fill(slots: readonly Slot[], result: Result, caller: number, report: { moved: number }): boolean {
  const slot = slots.find((each) => !each.result)
  if (!slot) return false
  slot.result = result
  if (slot.place !== caller) report.moved++
  return true
}

/**
 * A message merged from several neighbours. It owns its lists, so that merging a thousand messages copies each of them
 * once.
 */
type Merged = { role: 'user'; parts: Part[] } | { role: 'assistant'; text: string; calls: ToolCall[] }

/** Adds a message, or merges it into the last one. `own` is the merged message that is last, when there is one. */
function add(
  kept: Turn[],
  turn: Exclude<Turn, Result>,
  own: Merged | undefined,
  report: { merged: number },
): Merged | undefined {
  const last = kept.at(-1)
  if (!last || last.role === 'tool' || last.role !== turn.role) {
    kept.push(turn)
    return undefined
  }
  report.merged++
  const merged: Merged =
    own ??
    (last.role === 'user'
      ? { role: 'user', parts: [...last.parts] }
      : { role: 'assistant', text: last.text, calls: [...last.calls] })
  kept[kept.length - 1] = merged
  if (merged.role === 'user' && turn.role === 'user') for (const part of turn.parts) addPart(merged.parts, part)
  else if (merged.role === 'assistant' && turn.role === 'assistant') {
    merged.text += merged.text !== '' && turn.text !== '' ? `\n\n${turn.text}` : turn.text
    for (const call of turn.calls) merged.calls.push(call)
  }
  return merged
}

/** Joins a text with the text before it, as if both had been sent together. */
function addPart(parts: Part[], part: Part): void {
  const last = parts.at(-1)
  if (part.type !== 'text' || last?.type !== 'text') parts.push(part)
  else if (part.text !== '')
    parts[parts.length - 1] = { type: 'text', text: last.text === '' ? part.text : `${last.text}\n\n${part.text}` }
}

function shorten(result: Result, report: { oversize: number }): Result {
  if (isBinary(result.text)) {
    report.oversize++
    return { ...result, text: `[left out: ${result.text.length} characters that are no text]` }
  }
  if (result.text.length <= MAX_RESULT_CHARS) return result
  report.oversize++
  return { ...result, text: result.text.slice(0, MAX_RESULT_CHARS - RESULT_NOTE.length) + RESULT_NOTE }
}

/** A NUL, or more than one in ten control characters and replacement characters. */
