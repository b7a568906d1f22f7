import type { Hooks, Metrics } from 'svc/sdk'
import { ToolCallEnded, TurnEnded } from '../chat/contract.ts'

/** How many agents get a metric label of their own; a scrape must not grow with every agent there ever was. */
const MAX_LABELLED_AGENTS = 1_000
const OTHERS = '(others)'

/** Counts what turns used and what tools did, by the name of the agent. */
export function countTurns(metrics: Metrics, hooks: Hooks): void {
  const tokens = metrics.counter('svc_tokens_total', 'Tokens of models that were called, input and output.')
  const calls = metrics.counter('svc_llm_calls_total', 'Calls of a model in turns that ended.')
  const turns = metrics.counter('svc_turns_total', 'Turns that ended with an answer.')
  const tools = metrics.counter('svc_tool_calls_total', 'Calls of tools that were made.')
  const known = new Set<string>()
  const labelOf = (name: string): string => {
    if (known.has(name)) return name
    if (known.size >= MAX_LABELLED_AGENTS) return OTHERS
    known.add(name)
    return name
  }
  hooks.on(TurnEnded, ({ agent: { name }, result: { usage, iterations, provider, model } }) => {
    const agent = labelOf(name)
    tokens.add(usage.input + usage.output, { agent, provider, model })
    calls.add(iterations, { agent })
    turns.add(1, { agent })
  })
  hooks.on(ToolCallEnded, ({ agent: { name }, failed }) => {
    tools.add(1, { agent: labelOf(name), outcome: failed ? 'failed' : 'done' })
  })
}
