import { HiddenProperty } from 'svc/internal'
import type { CompletionRequest, ToolCall, Turn } from 'svc/providers'
import type { ContextPressure } from '../contract.ts'

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
const CUT_NOTE = '\n[cut: the result did not fit the context window]'
const REMOVED = '[removed: this result did not fit the context window]'

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
  const turnTokens = maxTokens(request.turns)
  if (turnTokens + request.system.length < window / 8) return request
  const family = familyOf(request.model)
  const fixed = request.tools.reduce((total, tool) => total + countTool(tool, family), 0) + answerOf(request, window)
  // A system prompt may be long; to count it takes longer than all the rest of a turn.
  if (turnTokens < window / 8 && turnTokens + fixed + request.system.length * MAX_PER_CHAR < window) return request
  const room = window - fixed - countTokens(request.system, family)
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
  const maxResultTokens = Math.floor(window * RESULT_PART)
  let left = Math.floor(window * RESULTS_PART)
  let changed = false
  const kept = turns.toReversed().map((turn) => {
    if (turn.role !== 'tool') return turn
    // A text has no more tokens than this, so most are not counted.
    let text = turn.text
    if (text.length * 1.5 > maxResultTokens && count(text) > maxResultTokens) text = cut(text, maxResultTokens, count)
    const size = text.length * 1.5 > left ? count(text) : Math.ceil(text.length / 3)
    if (size > left) text = REMOVED
    left -= Math.min(size, left)
    if (text === turn.text) return turn
    changed = true
    return { ...turn, text }
  })
  return changed ? kept.toReversed() : turns
}
function cut(text: string, tokens: number, count: (text: string) => number): string {
  return (
    text.slice(0, Math.max(0, Math.floor(text.length * (tokens / count(text)) * 0.95) - CUT_NOTE.length)) + CUT_NOTE
  )
}

/** How a family of tokenizers splits text. */
interface Family {
  /** For a word of up to six letters; longer ones are cut into more. */
  readonly word: number
  /** Digits that go into one token. */
  readonly digits: number
  /** For one mark of punctuation: some go together. */
  readonly mark: number
  /**
   * For one character of Chinese or Japanese. Below: of Korean, of Cyrillic and Greek, of other scripts, for half an
   * emoji.
   */
  readonly cjk: number
  readonly hangul: number
  readonly cyrillic: number
  readonly other: number
  readonly emoji: number
  readonly image: number
}

// Fitted to the counts of real tokenizers in test/plugins/chat/tokens.test.ts, and rather too high than too low: a
// count that is too low overflows the window, one that is too high compacts a little early. A real tokenizer takes tens
// of megabytes, and every vendor has its own. Those of Gemini and of the last row are not published, so their numbers
// are cautious guesses.
const FAMILIES: readonly (readonly [pattern: RegExp, family: Family])[] = [
  [
    /gpt|^o\d|codex|chatgpt/,
    { word: 1, digits: 3, mark: 0.75, cjk: 0.9, hangul: 0.65, cyrillic: 0.33, other: 0.36, emoji: 1, image: 800 },
  ],
  [
    /claude/,
    { word: 1.1, digits: 2, mark: 0.8, cjk: 1.1, hangul: 1.15, cyrillic: 0.6, other: 1.1, emoji: 1.2, image: 1600 },
  ],
  [
    /gemini|gemma/,
    { word: 1.05, digits: 1, mark: 0.75, cjk: 0.75, hangul: 0.8, cyrillic: 0.45, other: 0.6, emoji: 1.2, image: 260 },
  ],
  [
    /qwen|deepseek|glm|kimi|moonshot|minimax/,
    { word: 1.05, digits: 1, mark: 0.75, cjk: 0.75, hangul: 0.8, cyrillic: 0.5, other: 0.8, emoji: 1.2, image: 1200 },
  ],
  [
    /llama|mistral|mixtral|codestral|phi/,
    { word: 1, digits: 3, mark: 0.75, cjk: 0.95, hangul: 0.7, cyrillic: 0.4, other: 0.55, emoji: 1.3, image: 1600 },
  ],
]
const UNKNOWN_FAMILY: Family = {
  word: 1.1,
  digits: 2,
  mark: 0.8,
  cjk: 1.1,
  hangul: 1.15,
  cyrillic: 0.6,
  other: 1.1,
  emoji: 1.3,
  image: 1200,
}
/** Role marks and separators of one message. */
const PER_MESSAGE = 4
/** No character and no image costs more in any family. */
const MAX_PER_CHAR = 1.5
const MAX_PER_IMAGE = 1600
/** For data that a provider gets back unchanged, such as a signature. */
const PER_OPAQUE_CHAR = 0.3
const SHORT_WORD = 6
/** For each letter beyond a short word. */
const LONG_WORD = 0.25

/** Finds the family by the name of a model. */
export function familyOf(model: string): Family {
  const name = model.toLowerCase()
  return FAMILIES.find(([pattern]) => pattern.test(name))?.[1] ?? UNKNOWN_FAMILY
}

/** Estimates the tokens of a text by its words, numbers, punctuation and scripts. */
export function countTokens(text: string, family: Family): number {
  let tokens = 0
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at)
    const from = at++
    if (isLetter(code)) {
      while (isLetter(text.charCodeAt(at))) at++
      tokens += family.word * (1 + Math.max(0, at - from - SHORT_WORD) * LONG_WORD)
    } else if (isDigit(code)) {
      while (isDigit(text.charCodeAt(at))) at++
      tokens += Math.ceil((at - from) / family.digits)
    } else if (code === 0x20) {
      // One space goes with the word that follows, not with a number; more are one token together.
      while (text.charCodeAt(at) === 0x20) at++
      if (at - from > 1 || isDigit(text.charCodeAt(at))) tokens += 1
    } else if (isBreak(code)) {
      while (text.charCodeAt(at) === code) at++
      tokens += 1
    } else tokens += tokensOf(code, family)
  }
  return Math.ceil(tokens)
}
/** Tokens of one character that is part of no word, number or space. */
function tokensOf(code: number, family: Family): number {
  if (code < 0x80) return family.mark
  if (isHangul(code)) return family.hangul
  if (isCjk(code)) return family.cjk
  if (code >= 0x370 && code < 0x530) return family.cyrillic
  return isEmoji(code) ? family.emoji : family.other
}
const isLetter = (code: number): boolean =>
  (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0xc0 && code < 0x250)
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
const isBreak = (code: number): boolean => code === 0x0a || code === 0x0d || code === 0x09
const isEmoji = (code: number): boolean => (code >= 0xd800 && code <= 0xdfff) || (code >= 0x2190 && code <= 0x2bff)
const isHangul = (code: number): boolean => code >= 0xac00 && code <= 0xd7ff
const isCjk = (code: number): boolean =>
  (code >= 0x2e80 && code <= 0x9fff) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xff00 && code <= 0xffef)

export function countTurn(turn: Turn, family: Family): number {
  if (turn.role === 'tool') return PER_MESSAGE + countTokens(turn.text, family)
  if (turn.role === 'user') {
    return turn.parts.reduce(
      (sum, part) => sum + (part.type === 'text' ? countTokens(part.text, family) : family.image),
      PER_MESSAGE,
    )
  }
  return turn.calls.reduce(
    (sum, call) =>
      sum + PER_MESSAGE + countTokens(call.name, family) + countTokens(JSON.stringify(call.args ?? null), family),
    PER_MESSAGE + countTokens(turn.text, family) + Math.ceil((turn.replay?.length ?? 0) * PER_OPAQUE_CHAR),
  )
}

/** Tokens of each tool's description, counted once and for whichever family came first. */
const toolTokens = new WeakMap<object, number>()
function countTool(tool: CompletionRequest['tools'][number], family: Family): number {
  const known = toolTokens.get(tool.input)
  if (known !== undefined) return known
  const tokens = PER_MESSAGE + countTokens(tool.name + tool.description + JSON.stringify(tool.input), family)
  toolTokens.set(tool.input, tokens)
  return tokens
}

/** An upper bound of the tokens of these turns, found without reading their texts. */
export function maxTokens(turns: readonly Turn[]): number {
  return turns.reduce((sum, turn) => sum + PER_MESSAGE + maxTurnTokens(turn), 0)
}
function maxTurnTokens(turn: Turn): number {
  if (turn.role === 'user') {
    return turn.parts.reduce(
      (sum, part) => sum + (part.type === 'text' ? part.text.length * MAX_PER_CHAR : MAX_PER_IMAGE),
      0,
    )
  }
  let chars = turn.text.length
  if (turn.role === 'assistant') {
    chars += turn.replay?.length ?? 0
    for (const call of turn.calls) chars += call.name.length + argumentChars(call)
  }
  return chars * MAX_PER_CHAR
}
/** Calls stay the same from turn to turn. */
const argumentLengths = new HiddenProperty<ToolCall, number>()
const argumentChars = (call: ToolCall): number =>
  argumentLengths.get(call, ({ args }) => JSON.stringify(args ?? null).length)
