import { userText, transcriptOf } from 'svc/providers'
import type { CompletionRequest } from 'svc/providers'

/**
 * The prompt of a program: the conversation as a transcript. The system prompt begins it, unless the program takes that
 * in another way.
 */
export function promptOf({ system, turns, responseFormat }: CompletionRequest, takesSystemPrompt: boolean): string {
  const [only] = turns
  const conversation =
    turns.length === 1 && only?.role === 'user'
      ? userText(only)
      : `${transcriptOf(turns)}\n\nGive the next answer of the assistant, and nothing else.`
  return [takesSystemPrompt ? '' : system, conversation, formatInstruction(responseFormat)]
    .filter((text, index) => index === 1 || text !== '')
    .join('\n\n')
}

function formatInstruction(format: CompletionRequest['responseFormat']): string {
  if (format === undefined) return ''
  return format.type === 'json'
    ? 'Answer with JSON only.'
    : `Answer with JSON only, as this schema says: ${JSON.stringify(format.schema)}`
}
