import type { Tier } from './contract.ts'

/** Providers that run on this machine. */
export const local: ReadonlySet<string> = new Set(['builtin', 'ollama', 'vllm', 'lmstudio', 'lemonade'])
const small = /(^|[^a-z])(mini|nano|micro|lite|flash|small|tiny|haiku|instant|fast|[1-9]b)([^a-z]|$)/

/**
 * Decision: neither package has tiers, so they follow the price of a million output tokens, which separates a vendor's
 * large models from its small ones: from 20 USD frontier, from 8 smart, from 2 balanced, below that fast. Without a
 * price the name decides.
 */
export function tierOf(provider: string, id: string, outputUsd: number | undefined): Tier {
  if (local.has(provider)) return 'local'
  if (outputUsd === undefined) return small.test(id.toLowerCase()) ? 'fast' : 'balanced'
  return outputUsd >= 20 ? 'frontier' : outputUsd >= 8 ? 'smart' : outputUsd >= 2 ? 'balanced' : 'fast'
}
