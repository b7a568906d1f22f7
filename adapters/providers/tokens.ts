import type { CompletionRequest, Usage } from './contract.ts'

// Four characters a token is the usual rule of thumb for English; an image counts as what the large vendors charge for a small one.
const CHARS_PER_TOKEN = 4
const IMAGE_TOKENS = 300
/** No model takes or gives this much in one call, so a larger figure is a defect of the provider. */
const MOST_TOKENS = 100_000_000

/** A rough count of tokens, for when nobody else counts them. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN)
}

/** A usage counted from characters and flagged as such. `outputChars` is the length of all that the model wrote. */
export function estimateUsage(request: CompletionRequest, outputChars: number): Usage {
  let chars = request.system.length
  let images = 0
  for (const turn of request.turns) {
    if (turn.role === 'user') for (const part of turn.parts) { if (part.type === 'text') chars += part.text.length; else images++ }
    else chars += turn.text.length
    if (turn.role === 'assistant') for (const call of turn.calls) chars += call.name.length + JSON.stringify(call.args ?? null).length
  }
  for (const tool of request.tools) chars += tool.name.length + tool.description.length + JSON.stringify(tool.input).length
  return { input: Math.ceil(chars / CHARS_PER_TOKEN) + images * IMAGE_TOKENS, output: Math.ceil(outputChars / CHARS_PER_TOKEN), estimated: true }
}

/** Whether a provider's figures can be believed: whole, not negative, not absurd, parts not larger than their whole. */
export function plausible(usage: Usage): boolean {
  const count = (n: number | undefined, most: number) => n === undefined || (Number.isInteger(n) && n >= 0 && n <= most)
  return count(usage.input, MOST_TOKENS) && count(usage.output, MOST_TOKENS)
    && count(usage.cachedInput, usage.input) && count(usage.thinking, usage.output)
}
