import { textOfUser, transcriptOf } from 'svc/providers'
import type { CompletionRequest, Turn } from 'svc/providers'

/** The input of a prediction. Further fields are those of the model. */
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

/** One question stays as it is; a conversation is written down with its speakers, and the model goes on from there. */
function promptOf(turns: readonly Turn[]): string {
  const [only] = turns
  if (turns.length === 1 && only?.role === 'user') return textOfUser(only)
  return `${transcriptOf(turns)}\n\nAssistant:`
}
