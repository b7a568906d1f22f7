import type * as v from 'valibot'
import { escapeControls, renderDuration } from 'svc/cli'
import type { Done } from './events.ts'

/** What an answer took, in one line; `undefined` where the daemon does not say. */
export function usageLine(
  { usage, cost_usd: cost, provider, model }: v.InferOutput<typeof Done>,
  secs: number,
): string | undefined {
  if (usage === undefined) return undefined
  const price = cost === null || cost === undefined ? 'price unknown' : `$${Number(cost.toFixed(6))}`
  const who = provider === undefined || model === undefined ? [] : [escapeControls(`${provider}/${model}`)]
  const tokens = `${usage.input_tokens} tokens in, ${usage.output_tokens} out`
  return [tokens, price, ...who, renderDuration(secs)].join(', ')
}
