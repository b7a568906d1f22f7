import type { ToolCall, Turn } from 'svc/providers'

export type Result = Extract<Turn, { role: 'tool' }>

export const MAX_RESULT_CHARS = 50_000
/** Characters at the start of a result that decide whether it is text. */
const SAMPLE_CHARS = 1000
/** Characters that text does not have. */
const ODD = /[^\t\n\r -\ufffc\ufffe\uffff]/

/** Whether nothing has to be repaired. That is so of nearly every history, and every call of a model asks. */
export function isSound(turns: readonly Turn[]): boolean {
  if (turns[0]?.role !== 'user') return false
  let last: Turn['role'] | undefined
  let calls: readonly ToolCall[] = NO_CALLS_LEFT
  let answered = 0
  for (const turn of turns) {
    if (turn.role === 'tool') {
      if (turn.callId !== calls[answered]?.id || !isWholeText(turn)) return false
      answered++
    } else {
      if (turn.role === last || answered < calls.length || isEmpty(turn)) return false
      calls = turn.role === 'assistant' ? turn.calls : NO_CALLS_LEFT
      answered = 0
    }
    last = turn.role
  }
  return answered === calls.length
}
const NO_CALLS_LEFT: readonly ToolCall[] = []

/** Results that need not be shortened. */
const wholeTexts = new WeakSet<Result>()
function isWholeText(result: Result): boolean {
  if (wholeTexts.has(result)) return true
  if (result.text.length > MAX_RESULT_CHARS || isBinary(result.text)) return false
  wholeTexts.add(result)
  return true
}

export function isEmpty(turn: Exclude<Turn, Result>): boolean {
  if (turn.role === 'assistant') return turn.calls.length === 0 && turn.text.trim() === ''
  return turn.parts.every((part) => part.type === 'text' && part.text === '')
}
export function isBinary(text: string): boolean {
  // Nearly all text has none of them: one regular expression is faster than the loop.
  if (!ODD.test(text.slice(0, SAMPLE_CHARS))) return false
  let odd = 0
  const end = Math.min(text.length, SAMPLE_CHARS)
  for (let at = 0; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === 0) return true
    if ((code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d && code !== 0x1b) || code === 0xfffd) odd++
  }
  return odd * 10 > end
}
