interface WireCall {
  id?: unknown
  type?: unknown
  function?: { name?: unknown; arguments?: unknown }
}
interface WirePart {
  type?: unknown
  text?: unknown
  image_url?: { url?: unknown }
}
interface WireMessage {
  role?: unknown
  content?: string | null | WirePart[]
  tool_calls?: WireCall[]
  tool_call_id?: unknown
  reasoning_content?: unknown
  reasoning_details?: unknown
}
/** The fields of a chat completion request that are looked at. Nothing about them is trusted. */
export interface ChatBody {
  model?: unknown
  messages?: WireMessage[]
  stream?: unknown
  input?: unknown
  stream_options?: { include_usage?: unknown }
  tools?: { type?: unknown; function?: { name?: unknown; parameters?: { type?: unknown } } }[]
  temperature?: unknown
  max_tokens?: unknown
  max_completion_tokens?: unknown
  thinking?: { type?: unknown }
}

/** Why OpenAI would answer 400, in its words; `undefined` when it would not. */
export function refuse(body: ChatBody): string | undefined {
  if (typeof body.model !== 'string' || body.model === '') return 'you must provide a model parameter'
  if (!Array.isArray(body.messages) || body.messages.length === 0)
    return "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
  const { temperature } = body
  if (temperature !== undefined && (typeof temperature !== 'number' || temperature < 0 || temperature > 2))
    return "Invalid 'temperature': expected a value between 0 and 2."
  for (const limit of [body.max_tokens, body.max_completion_tokens]) {
    if (limit !== undefined && (!Number.isInteger(limit) || Number(limit) < 1))
      return "Invalid 'max_tokens': integer below minimum value."
  }
  if (body.stream_options !== undefined && body.stream !== true)
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
  return refuseTools(body.tools) ?? refuseMessages(body.messages)
}

function refuseTools(tools: ChatBody['tools']): string | undefined {
  if (tools === undefined) return undefined
  if (!Array.isArray(tools) || tools.length === 0) return "Invalid 'tools': empty array."
  const names = new Set<unknown>()
  for (const [index, tool] of tools.entries()) {
    const name = tool.function?.name
    if (tool.type !== 'function' || typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,64}$/.test(name))
      return `Invalid 'tools[${index}].function.name': string does not match pattern.`
    if (names.has(name)) return `Invalid 'tools': duplicate name ${name}.`
    names.add(name)
    if (tool.function?.parameters?.type !== 'object')
      return `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"'.`
  }
  return undefined
}

function refuseMessages(messages: readonly WireMessage[]): string | undefined {
  let open = new Set<string>()
  for (const [index, message] of messages.entries()) {
    const where = `messages[${index}]`
    if (message.role === 'tool') {
      if (typeof message.tool_call_id !== 'string' || !open.delete(message.tool_call_id))
        return `Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'. (${where})`
      if (typeof message.content !== 'string') return `Invalid type for '${where}.content'.`
      continue
    }
    if (open.size > 0)
      return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': ${[...open].join(', ')}`
    if (
      message.role !== 'system' &&
      message.role !== 'user' &&
      message.role !== 'assistant' &&
      message.role !== 'developer'
    )
      return `Invalid value for '${where}.role'.`
    if (message.tool_calls !== undefined) {
      if (message.role !== 'assistant' || !Array.isArray(message.tool_calls) || message.tool_calls.length === 0)
        return `Invalid '${where}.tool_calls'.`
      open = new Set()
      for (const call of message.tool_calls) {
        if (typeof call.id !== 'string' || call.id === '' || call.type !== 'function')
          return `Invalid '${where}.tool_calls': id and type are required.`
        if (typeof call.function?.name !== 'string' || typeof call.function.arguments !== 'string')
          return `Invalid '${where}.tool_calls[].function'.`
        if (open.has(call.id)) return `Duplicate tool call id ${call.id}.`
        open.add(call.id)
      }
    } else if (
      message.content === null ||
      message.content === undefined ||
      (message.content.length === 0 && message.role === 'user')
    )
      return `Invalid value for '${where}.content': expected a string, got null.`
    if (Array.isArray(message.content))
      for (const part of message.content) {
        const problem = refusePart(part, where)
        if (problem) return problem
      }
  }
  if (open.size > 0)
    return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': ${[...open].join(', ')}`
  return undefined
}

function refusePart(part: WirePart, where: string): string | undefined {
  if (part.type === 'text')
    return typeof part.text === 'string' ? undefined : `Invalid type for '${where}.content[].text'.`
  if (part.type !== 'image_url') return `Invalid value for '${where}.content[].type'.`
  const url = part.image_url?.url
  const match =
    typeof url === 'string' ? /^data:image\/(?:png|jpeg|gif|webp);base64,([A-Za-z0-9+/]+={0,2})$/.exec(url) : null
  return match && (match[1]?.length ?? 0) % 4 === 0
    ? undefined
    : 'You uploaded an unsupported image. Please make sure your image is valid.'
}
