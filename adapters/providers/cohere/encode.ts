import { jsonArguments, objectSchema, plainText } from 'svc/providers'
import type { CompletionRequest, Part, Turn } from 'svc/providers'
import { readReplay } from './replay.ts'

/** The body of a chat request. */
export function encode(request: CompletionRequest): string {
  const { model, system, turns, tools, maxTokens, temperature, responseFormat, thinking } = request
  return JSON.stringify({
    ...request.extra,
    model,
    stream: true,
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...turns.map(message)],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, input }) => ({
        type: 'function',
        function: { name, description, parameters: objectSchema(input) },
      })),
    }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    // The API refuses a response format together with tools; the caller checks the answer in any case.
    ...(responseFormat &&
      tools.length === 0 && {
        response_format: {
          type: 'json_object',
          ...(responseFormat.type === 'json_schema' && { json_schema: responseFormat.schema }),
        },
      }),
    // Models that cannot think refuse the field.
    ...(thinking !== undefined &&
      model.includes('reasoning') && { thinking: { type: thinking ? 'enabled' : 'disabled' } }),
  })
}

function message(turn: Turn): object {
  if (turn.role === 'tool')
    return {
      role: 'tool',
      tool_call_id: turn.callId,
      content: [{ type: 'text', text: turn.text === '' ? ' ' : turn.text }],
    }
  if (turn.role === 'user') return { role: 'user', content: plainText(turn.parts) ?? turn.parts.map(part) }
  if (turn.calls.length === 0) return { role: 'assistant', content: turn.text }
  const replay = readReplay(turn.replay)
  const content = [
    ...(replay?.thinking ? [{ type: 'thinking', thinking: replay.thinking }] : []),
    ...(turn.text === '' ? [] : [{ type: 'text', text: turn.text }]),
  ]
  return {
    role: 'assistant',
    ...(content.length > 0 && { content }),
    ...(replay?.plan && { tool_plan: replay.plan }),
    tool_calls: turn.calls.map(({ id, name, args }) => ({
      id,
      type: 'function',
      function: { name, arguments: jsonArguments(args) },
    })),
  }
}

function part(value: Part): object {
  return value.type === 'text'
    ? { type: 'text', text: value.text }
    : { type: 'image_url', image_url: { url: `data:${value.mime};base64,${value.base64}` } }
}
