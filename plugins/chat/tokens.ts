import type { CompletionRequest, Turn } from 'svc/providers'

/** Tokens for one character of each class of script. */
interface Family { readonly latin: number; readonly digit: number; readonly other: number; readonly cjk: number; readonly image: number }

// Rules of thumb for each family's vocabulary, chosen rather too high than too low: what is counted too low overflows, what is
// counted too high is compacted a little early. A real tokenizer would be tens of megabytes, and every vendor has its own.
const families: readonly (readonly [pattern: RegExp, family: Family])[] = [
  [/gpt|^o\d|codex|chatgpt/, { latin: 0.24, digit: 0.36, other: 0.42, cjk: 0.95, image: 800 }],
  [/claude/, { latin: 0.29, digit: 0.6, other: 0.6, cjk: 1.3, image: 1600 }],
  [/gemini|gemma/, { latin: 0.24, digit: 1, other: 0.4, cjk: 0.75, image: 260 }],
  [/qwen|deepseek|glm|kimi|moonshot|minimax/, { latin: 0.25, digit: 1, other: 0.6, cjk: 0.75, image: 1200 }],
  [/llama|mistral|mixtral|codestral|phi/, { latin: 0.27, digit: 0.5, other: 0.55, cjk: 1.2, image: 1600 }],
]
const unknown: Family = { latin: 0.25, digit: 0.4, other: 0.5, cjk: 1.5, image: 1200 }
/** Role marks and separators of one message. */
const PER_MESSAGE = 4
/** No class of any family costs more per character, but emoji, which are two characters in JavaScript. */
const MOST_PER_CHAR = 1.5

/** How the models of a family count, by the model's name. */
export function familyOf(model: string): Family {
  const name = model.toLowerCase()
  return families.find(([pattern]) => pattern.test(name))?.[1] ?? unknown
}

/** Tokens of a text, by the scripts it is written in. */
export function countTokens(text: string, family: Family): number {
  let tokens = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) tokens += code >= 0x30 && code <= 0x39 ? family.digit : family.latin
    else if (isCjk(code)) tokens += family.cjk
    else tokens += code >= 0xd800 && code <= 0xdfff ? MOST_PER_CHAR : family.other
  }
  return Math.ceil(tokens)
}
function isCjk(code: number): boolean { return (code >= 0x2e80 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xd7ff) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xff00 && code <= 0xffef) }

export function countTurn(turn: Turn, family: Family): number {
  if (turn.role === 'tool') return PER_MESSAGE + countTokens(turn.text, family)
  if (turn.role === 'user') {
    return turn.parts.reduce((sum, part) => sum + (part.type === 'text' ? countTokens(part.text, family) : family.image), PER_MESSAGE)
  }
  return turn.calls.reduce(
    (sum, call) => sum + PER_MESSAGE + countTokens(call.name, family) + countTokens(JSON.stringify(call.args ?? null), family), PER_MESSAGE + countTokens(turn.text, family) + Math.ceil((turn.replay?.length ?? 0) * family.latin),
  )
}

/** Of a tool as the model is told of it; kept as long as the tool is, by whichever family asked first. */
const toolTokens = new WeakMap<object, number>()
export function countTool(tool: CompletionRequest['tools'][number], family: Family): number {
  const known = toolTokens.get(tool.input)
  if (known !== undefined) return known
  const tokens = PER_MESSAGE + countTokens(tool.name + tool.description + JSON.stringify(tool.input), family)
  toolTokens.set(tool.input, tokens)
  return tokens
}

/** More than the tokens of these turns can be, without looking at the texts. */
export function mostTokens(turns: readonly Turn[]): number {
  let chars = 0
  let rest = 0
  for (const turn of turns) {
    rest += PER_MESSAGE
    if (turn.role === 'user') for (const part of turn.parts) { if (part.type === 'text') chars += part.text.length; else rest += 1600 }
    else chars += turn.text.length
    if (turn.role !== 'assistant') continue
    if (turn.replay !== undefined) chars += turn.replay.length
    for (const call of turn.calls) chars += call.name.length + JSON.stringify(call.args ?? null).length
  }
  return chars * MOST_PER_CHAR + rest
}
