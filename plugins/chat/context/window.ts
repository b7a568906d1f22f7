import type { CompletionRequest, Turn } from 'svc/providers'
import type { ContextPressure } from '../contract.ts'
import { countTokens, countTool, countTurn, familyOf, maxTokens } from './tokens.ts'

/** What of the window goes where, in tokens. */
export interface WindowUse {
  readonly window: number
  /** The agent's own rules. */
  readonly system: number
  /** What memory and other features add to them. */
  readonly memory: number
  readonly tools: number
  readonly history: number
  /** Kept free for the answer. */
  readonly answer: number
  /** All but the answer. */
  readonly used: number
}
/** Parts of the window a single result, and all results together, may fill. */
const RESULT_PART = 0.3
const RESULTS_PART = 0.75
/** However much an answer may have, half of the window is for what it answers. */
const ANSWER_PART = 0.5
const NOTE = '\n[cut: the result did not fit the context window]'
const GONE = '[removed: this result did not fit the context window]'

export function pressureOf(part: number): ContextPressure {
  return part < 0.5 ? 'low' : part < 0.7 ? 'medium' : part <= 0.85 ? 'high' : 'critical'
}

/** Counts a request. `rules` is the system prompt before others added to it. */
export function measure(request: CompletionRequest, rules: string, window: number): WindowUse {
  const family = familyOf(request.model)
  const system = countTokens(rules, family)
  const memory = Math.max(0, countTokens(request.system, family) - system)
  const tools = request.tools.reduce((total, tool) => total + countTool(tool, family), 0)
  const history = request.turns.reduce((total, turn) => total + countTurn(turn, family), 0)
  return {
    window,
    system,
    memory,
    tools,
    history,
    answer: answerOf(request, window),
    used: system + memory + tools + history,
  }
}
function answerOf({ maxTokens = 0 }: CompletionRequest, window: number): number {
  return Math.min(maxTokens, Math.floor(window * ANSWER_PART))
}

/**
 * The same request, small enough for the window: cuts long results, then leaves out the oldest messages. The last
 * message of the user, everything after it and the system rules stay. Stored messages do not change.
 */
export function fit(request: CompletionRequest, window: number): CompletionRequest {
  if (maxTokens(request.turns) + request.system.length < window / 8) return request
  const family = familyOf(request.model)
  const fixed =
    countTokens(request.system, family) +
    request.tools.reduce((total, tool) => total + countTool(tool, family), 0) +
    answerOf(request, window)
  const room = window - fixed
  let turns = cutResults(request.turns, window, (text) => countTokens(text, family))
  const sizes = turns.map((turn) => countTurn(turn, family))
  let total = sizes.reduce((sum, size) => sum + size, 0)
  if (total > room) {
    const last = turns.findLastIndex(({ role }) => role === 'user')
    let from = 0
    // Whole exchanges go, so that what is left begins with the user and no call loses its results.
    while (total > room && from < last) {
      do total -= sizes[from++] ?? 0
      while (from < last && turns[from]?.role !== 'user')
    }
    turns = turns.slice(from)
  }
  return turns === request.turns ? request : { ...request, turns }
}

/** No result over its part of the window, and the newest of all within theirs. */
function cutResults(turns: readonly Turn[], window: number, count: (text: string) => number): readonly Turn[] {
  const most = Math.floor(window * RESULT_PART)
  let left = Math.floor(window * RESULTS_PART)
  let changed = false
  const kept = turns.toReversed().map((turn) => {
    if (turn.role !== 'tool') return turn
    // A text has no more tokens than this, so most are not counted.
    let text = turn.text
    if (text.length * 1.5 > most && count(text) > most) text = cut(text, most, count)
    const size = text.length * 1.5 > left ? count(text) : Math.ceil(text.length / 3)
    if (size > left) text = GONE
    left -= Math.min(size, left)
    if (text === turn.text) return turn
    changed = true
    return { ...turn, text }
  })
  return changed ? kept.toReversed() : turns
}
function cut(text: string, tokens: number, count: (text: string) => number): string {
  return text.slice(0, Math.max(0, Math.floor(text.length * (tokens / count(text)) * 0.95) - NOTE.length)) + NOTE
}
