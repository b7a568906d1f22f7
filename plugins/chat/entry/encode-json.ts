import { omitUndefined } from 'svc/sdk'
import * as v from 'valibot'
import type { TurnResult } from '../contract.ts'

/** Interface 4.1, with what an existing client may want to know beside it. */
export const MessageAnswer = v.object({
  response: v.string(),
  /** What the model thought, where it says so and the agent shows it. */
  thinking: v.optional(v.string()),
  input_tokens: v.number(),
  output_tokens: v.number(),
  iterations: v.number(),
  cost_usd: v.nullable(v.number()),
  session_id: v.string(),
  turn_id: v.string(),
  provider: v.string(),
  model: v.string(),
  stop: v.picklist(['done', 'length', 'refused', 'cancelled', 'iterations']),
  context_pressure: v.optional(v.picklist(['low', 'medium', 'high', 'critical'])),
})

export function encodeJson(result: TurnResult): v.InferOutput<typeof MessageAnswer> {
  return {
    response: result.text,
    ...omitUndefined({ thinking: result.reasoning }),
    input_tokens: result.usage.input,
    output_tokens: result.usage.output,
    iterations: result.iterations,
    cost_usd: result.costUsd,
    session_id: result.sessionId,
    turn_id: result.turnId,
    provider: result.provider,
    model: result.model,
    stop: result.stop,
    ...omitUndefined({ context_pressure: result.contextPressure }),
  }
}
