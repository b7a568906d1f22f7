import type {
  EasyInputMessage,
  FunctionTool,
  ResponseCreateParamsStreaming,
  ResponseFormatTextConfig,
  ResponseFunctionToolCall,
  ResponseInputContent,
  ResponseInputItem,
} from 'openai/resources/responses/responses'
import { jsonArguments, objectSchema } from 'svc/providers'
import type { CompletionRequest, Part, ResponseFormat, ToolCall, Turn } from 'svc/providers'
import { Replay } from './wire.ts'

/** Whether a model thinks and therefore refuses a temperature. `chat` models of these families do neither. */
const isReasoningModel = (model: string): boolean => /^(?:o[1-9]|gpt-[5-9]|codex)/.test(model) && !/chat/.test(model)

/** A message of the assistant may be sent back without its id and status. */
type AssistantMessage = Omit<EasyInputMessage, 'content'> & {
  content: readonly { type: 'output_text'; text: string }[]
}
type InputItem = ResponseInputItem | AssistantMessage
type RequestBody = Omit<ResponseCreateParamsStreaming, 'input'> & { input: readonly InputItem[] }

/** The API refuses a lower limit. */
const MIN_TOKENS = 16

/** The body of a request for a response. */
export function encode(request: CompletionRequest): string {
  const { model, system, turns, tools, maxTokens, temperature, responseFormat, thinking } = request
  const body: RequestBody = {
    ...request.extra,
    model,
    stream: true,
    // The vendor stores nothing, so each request carries the encrypted thinking.
    store: false,
    ...(system !== '' && { instructions: system }),
    input: turns.flatMap(items),
    ...(tools.length > 0 && {
      tools: tools.map(functionTool),
    }),
    ...(maxTokens !== undefined && { max_output_tokens: Math.max(MIN_TOKENS, maxTokens) }),
    ...(isReasoningModel(model)
      ? {
          include: ['reasoning.encrypted_content'],
          ...(thinking !== undefined && {
            reasoning: thinking ? { effort: 'high', summary: 'auto' } : { effort: 'low' },
          }),
        }
      : temperature !== undefined && { temperature }),
    ...(responseFormat && { text: { format: format(responseFormat) } }),
  }
  return JSON.stringify(body)
}

function format(responseFormat: ResponseFormat): ResponseFormatTextConfig {
  if (responseFormat.type === 'json') return { type: 'json_object' }
  const { name, schema, strict } = responseFormat
  return { type: 'json_schema', name, schema: { ...schema }, ...(strict !== undefined && { strict }) }
}

function items(turn: Turn): readonly InputItem[] {
  if (turn.role === 'user') return [{ role: 'user', content: turn.parts.map(part) }]
  if (turn.role === 'tool') return [{ type: 'function_call_output', call_id: turn.callId, output: turn.text }]
  const replayed =
    turn.replay === undefined
      ? undefined
      : Replay.read<InputItem>(turn.replay, turn, {
          thought: (piece) => piece,
          text: assistantMessage,
          call: functionCall,
        })
  return replayed ?? [...(turn.text === '' ? [] : [assistantMessage(turn.text)]), ...turn.calls.map(functionCall)]
}
const assistantMessage = (text: string): AssistantMessage => ({
  role: 'assistant',
  content: [{ type: 'output_text', text }],
})
const functionCall = ({ id, name, args }: ToolCall): ResponseFunctionToolCall => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: jsonArguments(args),
})

function part(value: Part): ResponseInputContent {
  if (value.type === 'text') return { type: 'input_text', text: value.text }
  return { type: 'input_image', detail: 'auto', image_url: `data:${value.mime};base64,${value.base64}` }
}

function functionTool({ name, description, input }: CompletionRequest['tools'][number]): FunctionTool {
  return { type: 'function', name, description, parameters: objectSchema(input), strict: false }
}
