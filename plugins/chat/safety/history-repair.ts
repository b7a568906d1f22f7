import { enforced } from 'svc/internal'
import type { Part, ToolCall, Turn } from 'svc/providers'

/** How many defects of each kind were mended. */
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
type Result = Extract<Turn, { role: 'tool' }>
interface Slot {
  readonly call: ToolCall
  readonly place: number
  result: Result | undefined
}

export const UNANSWERED = 'interrupted: this call has no recorded result, and it is not known whether it ran'
const MAX_RESULT_CHARS = 50_000
/** So much of a result is looked at to tell text from anything else. */
const LOOKED_AT = 1000
const RESULT_NOTE = '\n[cut: the result was longer]'

/**
 * History that every provider accepts: results directly after their calls, one for each, no empty messages, no two neighbours
 * of one role, a user's message first. A projection: what is stored stays as it is. Applying it twice changes nothing more.
 */
export function repair(turns: readonly Turn[]): { readonly turns: readonly Turn[]; readonly report: RepairReport } {
  const report = {
    orphanResults: 0,
    empty: 0,
    moved: 0,
    duplicateResults: 0,
    synthetic: 0,
    merged: 0,
    leading: 0,
    oversize: 0,
  }
  // Most histories have no calls, and nothing to look for.
  const slots = turns.some((turn) => turn.role === 'tool' || (turn.role === 'assistant' && turn.calls.length > 0))
    ? answer(turns, report)
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

const NO_SLOTS: readonly Slot[] = []
const NO_CALLS: ReadonlyMap<number, readonly Slot[]> = new Map()

/** The calls of each assistant message with the results that belong to them. Ids may be used again by a later message. */
function answer(
  turns: readonly Turn[],
  report: { orphanResults: number; moved: number; duplicateResults: number },
): ReadonlyMap<number, readonly Slot[]> {
  const byPlace = new Map<number, Slot[]>()
  const latest = new Map<string, Slot[]>()
  const early: Result[] = []
  let caller = -1
  for (const [place, turn] of turns.entries()) {
    if (turn.role === 'tool') {
      const open = latest.get(turn.callId)
      const slot = open?.find(({ result }) => !result)
      if (slot) {
        slot.result = turn
        if (slot.place !== caller) report.moved++
      } else if (open) report.duplicateResults++
      else early.push(turn)
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
  for (const result of early) {
    const slot = latest.get(result.callId)?.find((each) => !each.result)
    if (slot) {
      slot.result = result
      report.moved++
    } else report.orphanResults++
  }
  return byPlace
}

function isEmpty(turn: Exclude<Turn, Result>): boolean {
  if (turn.role === 'assistant') return turn.calls.length === 0 && turn.text.trim() === ''
  return turn.parts.every((part) => part.type === 'text' && part.text === '')
}

/** A message made of several neighbours; its lists are its own, so that merging a thousand of them copies each once. */
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

/** Texts that come to stand beside each other become one, as if they had been sent together. */
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

/** All but what text is made of. */
const ODD = /[^\t\n\r -\ufffc\ufffe\uffff]/
/** A NUL, or one in ten characters that no text has: control characters, and what stands for bytes that are none. */
function isBinary(text: string): boolean {
  // Nearly all text has nothing of this, and is done with one look by the engine instead of a loop it would have to compile.
  if (!ODD.test(text.slice(0, LOOKED_AT))) return false
  let odd = 0
  const end = Math.min(text.length, LOOKED_AT)
  for (let at = 0; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === 0) return true
    if ((code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d && code !== 0x1b) || code === 0xfffd) odd++
  }
  return odd * 10 > end
}
