import type { CompletionRequest, Turn } from 'svc/providers'

/** All a program reads: the conversation written down with its speakers, after the instructions where it takes them no other way. */
export function promptOf({ system, turns, responseFormat }: CompletionRequest, isApart: boolean): string {
  const [only] = turns
  const asked = turns.length === 1 && only?.role === 'user' ? said(only) : `${turns.map(written).filter((text) => text !== '').join('\n\n')}\n\nGive the next answer of the assistant, and nothing else.`
  const form = responseFormat === undefined ? '' : responseFormat.type === 'json' ? '\n\nAnswer with JSON only.' : `\n\nAnswer with JSON only, as this schema says: ${JSON.stringify(responseFormat.schema)}`
  return `${isApart || system === '' ? '' : `${system}\n\n`}${asked}${form}`
}

function written(turn: Turn): string {
  if (turn.role === 'user') return `User: ${said(turn)}`
  if (turn.role === 'tool') return `Result of ${turn.tool}${turn.failed ? ' (failed)' : ''}: ${turn.text}`
  const calls = turn.calls.map(({ name, args }) => `[calls ${name} ${typeof args === 'string' ? args : JSON.stringify(args ?? {})}]`)
  return turn.text === '' && calls.length === 0 ? '' : `Assistant: ${[turn.text, ...calls].filter((text) => text !== '').join('\n')}`
}
function said(turn: Extract<Turn, { role: 'user' }>): string {
  return turn.parts.map((part) => (part.type === 'text' ? part.text : '[picture]')).join('\n')
}
