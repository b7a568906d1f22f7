import { userText, transcriptOf } from 'svc/providers'
import type { CompletionRequest, Turn } from 'svc/providers'

/** The input of a prediction. */
export function inputOf(request: CompletionRequest): Record<string, unknown> {
  const { system, turns, maxTokens, temperature } = request
  const image = turns
    .flatMap((turn) => (turn.role === 'user' ? turn.parts.filter((part) => part.type === 'image') : []))
    .at(-1)
  return {
    ...request.extra,
    prompt: promptOf(turns),
    ...(system !== '' && { system_prompt: system }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(image && { image: `data:${image.mime};base64,${image.base64}` }),
  }
}

/** A single message is sent as it is, a conversation as a transcript that the model continues. */
function promptOf(turns: readonly Turn[]): string {
  const [only] = turns
  if (turns.length === 1 && only?.role === 'user') return userText(only)
  return `${transcriptOf(turns)}\n\nAssistant:`
}
