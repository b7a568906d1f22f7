import { estimateTokens, estimateUsage, nextCallNumber } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, Turn } from 'svc/providers'
import { answer, messageText, report } from './answer.ts'
import { readCommands } from './commands.ts'

const CHARS_PER_TOKEN = 4

export async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
  signal.throwIfAborted()
  const { text, calls } = respond(request)
  const shown = request.maxTokens === undefined ? text : truncate(text, request.maxTokens)
  for (const delta of pieces(shown)) {
    yield { type: 'text', delta }
    // Yields to the event loop, as a network would.
    await new Promise<void>((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
  }
  for (const call of calls) yield { type: 'call', call }
  const { input } = estimateUsage(request, 0)
  const output =
    estimateTokens(shown) + calls.reduce((sum, call) => sum + estimateTokens(call.name + JSON.stringify(call.args)), 0)
  yield {
    type: 'end',
    stop: calls.length > 0 ? 'calls' : shown.length < text.length ? 'length' : 'done',
    usage: { input, output },
  }
}

function respond(request: CompletionRequest): {
  text: string
  calls: readonly { id: string; name: string; args: unknown }[]
} {
  const results = lastResults(request.turns)
  if (results.length > 0) return { text: report(results), calls: [] }
  const messages = request.turns.map(messageText)
  const last = messages.at(-1) ?? ''
  const commands = readCommands(last, request.tools)
  const unknown = commands.find(({ tool }) => !request.tools.some(({ name }) => name === tool))
  if (unknown) {
    const names = request.tools.map(({ name }) => name).join(', ')
    return {
      text: `There is no tool "${unknown.tool}". ${names ? `This agent has: ${names}.` : 'This agent has no tools.'}`,
      calls: [],
    }
  }
  if (commands.length > 0) {
    const first = nextCallNumber(request.turns)
    return {
      text: '',
      calls: commands.map(({ tool, args }, index) => ({ id: `call_${first + index}`, name: tool, args })),
    }
  }
  return { text: answer(request, last, messages.slice(0, -1).filter(Boolean)), calls: [] }
}

/** The results of the last round of calls; none when a message followed. */
function lastResults(turns: readonly Turn[]): readonly Extract<Turn, { role: 'tool' }>[] {
  const from = turns.findLastIndex(({ role }) => role !== 'tool') + 1
  return turns.slice(from).filter((turn) => turn.role === 'tool')
}

function truncate(text: string, tokens: number): string {
  const end = tokens * CHARS_PER_TOKEN
  // Never between the two halves of a surrogate pair.
  return text.slice(0, end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1)) ? end - 1 : end)
}

/** About four words each. */
function pieces(text: string): readonly string[] {
  return text.match(/(?:\s*\S+){1,4}\s*|\s+/g) ?? []
}
