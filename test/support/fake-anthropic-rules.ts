import { createHmac } from 'node:crypto'

/** What a model takes, from the vendor's tables: how it may be told to think, and the longest answer. */
interface Model {
  readonly thinking: readonly string[]
  readonly forced: boolean
  readonly most: number
  readonly temperature: boolean
}
export const models: Readonly<Record<string, Model>> = {
  'claude-sonnet-4-5-20250929': { thinking: ['enabled', 'disabled'], forced: false, most: 64_000, temperature: true },
  'claude-opus-4-6': { thinking: ['enabled', 'disabled', 'adaptive'], forced: false, most: 128_000, temperature: true },
  'claude-haiku-5-5': { thinking: ['disabled', 'adaptive'], forced: false, most: 128_000, temperature: false },
  'claude-sonnet-5-5': { thinking: ['between_tools', 'adaptive'], forced: false, most: 128_000, temperature: false },
  'claude-opus-5-5': { thinking: ['adaptive'], forced: true, most: 128_000, temperature: false },
}
type Json = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
const fields = new Set([
  'model',
  'messages',
  'max_tokens',
  'system',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'metadata',
  'service_tier',
  'cache_control',
  'container',
  'inference_geo',
  'speed',
  'diagnostics',
])

/** The signature of something thought; only what was thought here has a right one. */
export const sign = (thinking: string): string =>
  createHmac('sha256', 'the fake vendor').update(thinking).digest('base64')

/** Why Anthropic would answer 400, in its words; `undefined` when it would not. `text` is the body as it was sent. */
export function refuse(body: Json, text: string): string | undefined {
  if (
    /(?:^|[^\\])(?:\\\\)*\\ud[89ab]/i.test(text.replace(/\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}/gi, '')) ||
    /(?:^|[^\\])(?:\\\\)*\\ud[c-f]/i.test(text.replace(/\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}/gi, ''))
  )
    return 'The request body is not valid JSON: no low surrogate in string'
  for (const field of Object.keys(body)) if (!fields.has(field)) return `${field}: Extra inputs are not permitted`
  const model = models[String(body['model'])]
  if (!model) return 'model: Field required'
  const most = body['max_tokens']
  if (most === undefined) return 'max_tokens: Field required'
  if (!Number.isInteger(most) || Number(most) < 1) return 'max_tokens: Input should be greater than or equal to 1'
  if (Number(most) > model.most)
    return `max_tokens: ${most} > ${model.most}, which is the maximum allowed number of output tokens for ${body['model']}`
  return (
    refuseThinking(body, model, Number(most)) ??
    refuseTools(body['tools']) ??
    refuseSystem(body['system']) ??
    refuseOutput(body['output_config']) ??
    refuseMessages(body) ??
    refuseMarks(body)
  )
}

function refuseThinking(body: Json, model: Model, most: number): string | undefined {
  const { thinking, temperature } = body
  if (temperature !== undefined && !model.temperature) return '`temperature` is deprecated for this model.'
  if (temperature !== undefined && (typeof temperature !== 'number' || temperature < 0 || temperature > 1))
    return 'temperature: Input should be less than or equal to 1'
  if (thinking === undefined) return undefined
  if (!isObject(thinking) || typeof thinking['type'] !== 'string') return 'thinking.type: Field required'
  const { type, budget_tokens: budget } = thinking
  if (!model.thinking.includes(type as string))
    return `"thinking.type.${type}" is not supported for this model.${model.thinking.includes('adaptive') ? ' Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.' : ''}`
  if (type !== 'enabled' && budget !== undefined)
    return 'thinking.adaptive.budget_tokens: Extra inputs are not permitted'
  if (type === 'enabled') {
    if (!Number.isInteger(budget) || Number(budget) < 1024)
      return 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024'
    if (Number(budget) >= most) return '`max_tokens` must be greater than `thinking.budget_tokens`.'
  }
  if ((type === 'enabled' || type === 'adaptive') && temperature !== undefined && temperature !== 1)
    return '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.'
  return undefined
}

function refuseTools(tools: unknown): string | undefined {
  if (tools === undefined) return undefined
  if (!Array.isArray(tools)) return 'tools: Input should be a valid list'
  const names = new Set<unknown>()
  for (const [index, tool] of list(tools).entries()) {
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(String(tool['name'] ?? '')))
      return `tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`
    if (names.has(tool['name'])) return 'tools: Tool names must be unique.'
    names.add(tool['name'])
    if (!isObject(tool['input_schema']) || tool['input_schema']['type'] !== 'object')
      return `tools.${index}.custom.input_schema.type: Field required`
    for (const field of Object.keys(tool))
      if (!['type', 'name', 'description', 'input_schema', 'cache_control', 'strict'].includes(field))
        return `tools.${index}.custom.${field}: Extra inputs are not permitted`
  }
  return undefined
}

function refuseSystem(system: unknown): string | undefined {
  if (system === undefined || typeof system === 'string') return undefined
  if (list(system).some(({ type, text }) => type !== 'text' || typeof text !== 'string'))
    return 'system: Input should be a valid string or a list of text blocks'
  return list(system).some(({ text }) => String(text).trim() === '')
    ? 'system: text content blocks must contain non-whitespace text'
    : undefined
}

function refuseOutput(output: unknown): string | undefined {
  if (output === undefined) return undefined
  if (!isObject(output)) return 'output_config: Input should be an object'
  const { format, effort } = output
  if (effort !== undefined && !['low', 'medium', 'high', 'xhigh', 'max'].includes(String(effort)))
    return 'output_config.effort: Input should be low, medium, high, xhigh or max'
  if (format === undefined) return undefined
  if (!isObject(format) || format['type'] !== 'json_schema' || !isObject(format['schema']))
    return 'output_config.format: Input should be a json_schema'
  return /"minimum"|"pattern"|"maxLength"/.test(JSON.stringify(format)) ||
    !JSON.stringify(format).includes('"additionalProperties":false')
    ? "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
    : undefined
}

function refuseMessages(body: Json): string | undefined {
  const messages = list(body['messages'])
  if (messages.length === 0) return 'messages: at least one message is required'
  const running = messages.findLastIndex(
    ({ role, content }) => role === 'user' && !list(content).some(({ type }) => type === 'tool_result'),
  )
  const ids = new Set<string>()
  let open: readonly string[] = []
  for (const [index, { role, content }] of messages.entries()) {
    const where = `messages.${index}`
    if (role !== (index % 2 === 0 ? 'user' : 'assistant'))
      return index === 0
        ? 'messages: first message must use the "user" role'
        : 'messages: roles must alternate between "user" and "assistant", but found multiple in a row'
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
    if (blocks.length === 0)
      return `${where}: all messages must have non-empty content except for the optional final assistant message`
    const results = blocks.filter(({ type }) => type === 'tool_result')
    for (const { tool_use_id: id } of results)
      if (!open.includes(String(id)))
        return `${where}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
    const missing = open.filter((id) => !results.some((result) => result['tool_use_id'] === id))
    if (missing.length > 0)
      return `${where}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
    if (results.length > 0 && blocks.slice(0, results.length).some(({ type }) => type !== 'tool_result'))
      return `${where}: \`tool_result\` blocks must come first`
    for (const [at, block] of blocks.entries()) {
      const problem = refuseBlock(block, role, `${where}.content.${at}`)
      if (problem) return problem
    }
    open = blocks.flatMap(({ type, id }) => (type === 'tool_use' ? [String(id)] : []))
    for (const id of open) if (ids.size === ids.add(id).size) return `${where}: \`tool_use\` ids must be unique`
    const kind = isObject(body['thinking']) ? body['thinking']['type'] : undefined
    if (role === 'assistant' && index > running && kind === 'enabled' && !/thinking/.test(String(blocks[0]?.type)))
      return `${where}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${blocks[0]?.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`
  }
  return messages.length % 2 === 0
    ? 'This model does not support assistant message prefill. The conversation must end with a user message.'
    : undefined
}

function refuseBlock(block: Json, role: unknown, where: string): string | undefined {
  switch (block['type']) {
    case 'text':
      return typeof block['text'] === 'string' && block['text'].trim() !== ''
        ? undefined
        : 'messages: text content blocks must contain non-whitespace text'
    case 'image': {
      const { source } = block
      if (role !== 'user' || !isObject(source) || source['type'] !== 'base64')
        return `${where}.image.source: Input should be a base64 source`
      if (!['image/jpeg', 'image/png', 'image/gif', 'image/webp'].includes(String(source['media_type'])))
        return `${where}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`
      const data = String(source['data'])
      return data.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(data)
        ? undefined
        : `${where}.image.source.base64.data: invalid base64 data`
    }
    case 'tool_use':
      if (role !== 'assistant') return `${where}: \`tool_use\` blocks can only be in \`assistant\` messages`
      if (!/^[a-zA-Z0-9_-]+$/.test(String(block['id'])))
        return `${where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`
      return isObject(block['input']) ? undefined : `${where}.tool_use.input: Input should be a valid dictionary`
    case 'tool_result':
      return role === 'user' ? undefined : `${where}: \`tool_result\` blocks can only be in \`user\` messages`
    case 'thinking':
      if (role !== 'assistant') return `${where}: \`thinking\` blocks can only be in \`assistant\` messages`
      return block['signature'] === sign(String(block['thinking']))
        ? undefined
        : `${where}: Invalid \`signature\` in \`thinking\` block`
    case 'redacted_thinking':
      return String(block['data']).startsWith('redacted:')
        ? undefined
        : `${where}: Invalid \`data\` in \`redacted_thinking\` block`
    default:
      return `${where}: Input tag '${block['type']}' found using 'type' does not match any of the expected tags`
  }
}

function refuseMarks(body: Json): string | undefined {
  const marked = [
    ...list(body['tools']),
    ...list(body['system']),
    ...list(body['messages']).flatMap(({ content }) => list(content)),
  ].filter((block) => block['cache_control'] !== undefined)
  if (marked.length > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`
  if (marked.some(({ type }) => type === 'thinking' || type === 'redacted_thinking'))
    return 'cache_control: Extra inputs are not permitted on thinking blocks'
  return marked.every(({ cache_control: mark }) => isObject(mark) && mark['type'] === 'ephemeral')
    ? undefined
    : "cache_control.type: Input should be 'ephemeral'"
}
