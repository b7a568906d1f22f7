import type { UsageLedger, UsageRecord } from './contract.ts'
import type { UsageStore } from './store.ts'

/**
 * Whatever a provider reports, the ledger holds numbers that can be summed: an invalid count is 0, an invalid cost is
 * unknown.
 */
export function usageLedger(store: UsageStore, now: () => number): UsageLedger {
  return {
    entry: (record) => store.insert(sane(record), new Date(now()).toISOString()),
    async totals(agentId, sessionId) {
      const sums = await store.agentTotals(agentId, sessionId)
      return {
        inputTokens: sums.input_tokens,
        outputTokens: sums.output_tokens,
        costUsd: sums.cost_usd,
        calls: sums.requests,
        unpriced: sums.unpriced,
      }
    },
    async turn({ id, agentId, sessionId }) {
      const calls = await store.ofTurn(agentId, sessionId, id)
      const last = calls.at(-1)
      if (!last) return undefined
      const sum = (of: (call: (typeof calls)[number]) => number): number =>
        calls.reduce((total, call) => total + of(call), 0)
      return {
        provider: last.provider,
        model: last.model,
        calls: calls.length,
        unpriced: sum((call) => (call.cost_usd === null ? 1 : 0)),
        inputTokens: sum((call) => call.input_tokens),
        outputTokens: sum((call) => call.output_tokens),
        costUsd: sum((call) => Math.round((call.cost_usd ?? 0) * 1e9)) / 1e9,
      }
    },
  }
}

function sane(record: UsageRecord): UsageRecord {
  return {
    ...record,
    inputTokens: count(record.inputTokens),
    outputTokens: count(record.outputTokens),
    cachedInputTokens: count(record.cachedInputTokens),
    costUsd: record.costUsd !== null && Number.isFinite(record.costUsd) && record.costUsd >= 0 ? record.costUsd : null,
  }
}
// 1e12 tokens is more than any call can have; beyond it one absurd answer would spoil every sum it is part of.
const count = (tokens: number): number =>
  Number.isFinite(tokens) && tokens > 0 && tokens <= 1e12 ? Math.round(tokens) : 0
