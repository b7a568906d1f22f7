import { omitUndefined } from 'svc/sdk'
import type { CompletionUsage } from 'openai/resources/completions'
import type { TurnResult } from '../chat/contract.ts'
import type { Completion } from './schema.ts'

/** What every piece of one answer has in common. */
export interface Head {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly warnings: readonly string[]
}

export function encodeCompletion(head: Head, result: TurnResult): Completion {
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: result.text,
          ...omitUndefined({ reasoning_content: result.reasoning }),
        },
        finish_reason: finishReason(result),
      },
    ],
    usage: encodeUsage(result),
    ...(head.warnings.length > 0 ? { warnings: [...head.warnings] } : {}),
  }
}
export function finishReason({ stop }: TurnResult): Completion['choices'][number]['finish_reason'] {
  return stop === 'length' ? 'length' : stop === 'refused' ? 'content_filter' : 'stop'
}
export function encodeUsage({ usage }: TurnResult): CompletionUsage {
  return { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output }
}
