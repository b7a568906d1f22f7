type Json = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
const fields = new Set([
  'messages',
  'system',
  'inferenceConfig',
  'toolConfig',
  'guardrailConfig',
  'additionalModelRequestFields',
  'promptVariables',
  'additionalModelResponseFieldPaths',
  'requestMetadata',
  'performanceConfig',
  'serviceTier',
  'outputConfig',
])

/** What a model takes: how it may be told to think, whether it has a cache, and of which parts. */
interface Model {
  readonly thinking: readonly string[]
  readonly cache: readonly ('system' | 'messages' | 'tools')[]
  readonly temperature: boolean
}
export const models: Readonly<Record<string, Model>> = {
  'us.anthropic.claude-sonnet-4-5-20250929-v1:0': {
    thinking: ['enabled', 'disabled'],
    cache: ['system', 'messages', 'tools'],
    temperature: true,
  },
  'global.anthropic.claude-opus-5-5': {
    thinking: ['adaptive'],
    cache: ['system', 'messages', 'tools'],
    temperature: false,
  },
  'amazon.nova-lite-v1:0': { thinking: [], cache: ['system', 'messages'], temperature: true },
  'meta.llama3-3-70b-instruct-v1:0': { thinking: [], cache: [], temperature: true },
}

/**
 * Why Bedrock would answer 400, in its words; `undefined` when it would not. `given` is the reasoning this fake gave
 * out, by its signature.
 */
export function refuse(body: Json, id: string, given: ReadonlyMap<string, string>): string | undefined {
  const model = models[id]
  if (!model) return 'The provided model identifier is invalid.'
  for (const field of Object.keys(body)) if (!fields.has(field)) return `Unknown field: ${field}`
  const { inferenceConfig: inference } = body
  if (inference !== undefined) {
    if (!isObject(inference)) return 'inferenceConfig has to be an object'
    const { maxTokens, temperature } = inference
    if (maxTokens !== undefined && (!Number.isInteger(maxTokens) || Number(maxTokens) < 1))
      return "1 validation error detected: Value at 'inferenceConfig.maxTokens' failed to satisfy constraint: Member must have value greater than or equal to 1"
    if (temperature !== undefined && (typeof temperature !== 'number' || temperature < 0 || temperature > 1))
      return "1 validation error detected: Value at 'inferenceConfig.temperature' failed to satisfy constraint: Member must have value less than or equal to 1"
    if (temperature !== undefined && !model.temperature) return '`temperature` is deprecated for this model.'
  }
  return (
    refuseThinking(body, model) ??
    refuseTools(body['toolConfig'], model) ??
    refuseSystem(body['system'], model) ??
    refuseMessages(body, model, given)
  )
}

function refuseThinking(body: Json, model: Model): string | undefined {
  const { additionalModelRequestFields: additional, inferenceConfig: inference } = body
  if (additional === undefined) return undefined
  if (!isObject(additional)) return 'additionalModelRequestFields has to be an object'
  const { thinking } = additional
  if (thinking === undefined) return undefined
  if (!isObject(thinking) || !model.thinking.includes(String(thinking['type'])))
    return `"thinking.type.${isObject(thinking) ? thinking['type'] : ''}" is not supported for this model.`
  const most = isObject(inference) ? inference['maxTokens'] : undefined
  if (
    thinking['type'] === 'enabled' &&
    !(Number(thinking['budget_tokens']) >= 1024 && Number(most) > Number(thinking['budget_tokens']))
  )
    return '`max_tokens` must be greater than `thinking.budget_tokens`.'
  return isObject(inference) && inference['temperature'] !== undefined
    ? '`temperature` may only be set to 1 when thinking is enabled.'
    : undefined
}

function refusePoint(block: Json, part: 'system' | 'messages' | 'tools', model: Model): string | undefined {
  if (!isObject(block['cachePoint']) || block['cachePoint']['type'] !== 'default')
    return 'cachePoint.type: expected default'
  return model.cache.includes(part)
    ? undefined
    : 'You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information.'
}

function refuseTools(config: unknown, model: Model): string | undefined {
  if (config === undefined) return undefined
  const tools = isObject(config) ? list(config['tools']) : []
  if (tools.length === 0)
    return "1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1"
  for (const tool of tools) {
    if ('cachePoint' in tool) {
      const problem = refusePoint(tool, 'tools', model)
      if (problem) return problem
      continue
    }
    const spec = tool['toolSpec']
    if (!isObject(spec) || !/^[a-zA-Z0-9_-]{1,64}$/.test(String(spec['name'])))
      return "Value at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+"
    if (spec['description'] === '')
      return "Value at 'toolSpec.description' failed to satisfy constraint: Member must have length greater than or equal to 1"
    const schema = isObject(spec['inputSchema']) ? spec['inputSchema']['json'] : undefined
    if (!isObject(schema) || schema['type'] !== 'object')
      return 'The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.'
  }
  return undefined
}

function refuseSystem(system: unknown, model: Model): string | undefined {
  for (const block of list(system)) {
    if ('cachePoint' in block) {
      const problem = refusePoint(block, 'system', model)
      if (problem) return problem
    } else if (typeof block['text'] !== 'string' || block['text'] === '')
      return 'The text field in the SystemContentBlock object is blank.'
  }
  return undefined
}

function refuseMessages(body: Json, model: Model, given: ReadonlyMap<string, string>): string | undefined {
  const messages = list(body['messages'])
  if (messages.length === 0)
    return 'A conversation must start with a user message. Try again with a conversation that starts with a user message.'
  const running = messages.findLastIndex(
    ({ role, content }) => role === 'user' && !list(content).some((block) => 'toolResult' in block),
  )
  let open: readonly string[] = []
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== (index % 2 === 0 ? 'user' : 'assistant'))
      return index === 0
        ? 'A conversation must start with a user message. Try again with a conversation that starts with a user message.'
        : 'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.'
    const blocks = list(content)
    if (blocks.length === 0)
      return `The content field in the Message object at messages.${index} is empty. Add a ContentBlock object to the content field and try again.`
    const results = blocks.flatMap(({ toolResult }) => (isObject(toolResult) ? [toolResult] : []))
    const uses = blocks.flatMap(({ toolUse }) => (isObject(toolUse) ? [toolUse] : []))
    if ((results.length > 0 || uses.length > 0) && body['toolConfig'] === undefined)
      return 'The toolConfig field must be defined when using toolUse and toolResult content blocks.'
    if (results.length !== open.length || !open.every((id) => results.some(({ toolUseId }) => toolUseId === id))) {
      return results.length > open.length
        ? `The number of toolResult blocks at messages.${index}.content exceeds the number of toolUse blocks of previous turn.`
        : `Expected toolResult blocks at messages.${index}.content for the following Ids: ${open.join(', ')}`
    }
    for (const block of blocks) {
      const problem = refuseBlock(block, role, `messages.${index}`, model, given)
      if (problem) return problem
    }
    open = uses.map(({ toolUseId }) => String(toolUseId))
    if (new Set(open).size !== open.length) return `messages.${index}: toolUse ids must be unique`
    const additional = body['additionalModelRequestFields']
    const thinks =
      isObject(additional) && isObject(additional['thinking']) && additional['thinking']['type'] === 'enabled'
    if (role === 'assistant' && index > running && thinks && !('reasoningContent' in (blocks[0] ?? {})))
      return `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${Object.keys(blocks[0] ?? {})[0]}\`.`
  }
  return messages.length % 2 === 0
    ? 'This model does not support assistant message prefill. The conversation must end with a user message.'
    : undefined
}

function refuseBlock(
  block: Json,
  role: unknown,
  where: string,
  model: Model,
  given: ReadonlyMap<string, string>,
): string | undefined {
  const { text, image, toolUse, toolResult, reasoningContent: reasoning } = block
  if ('cachePoint' in block) return refusePoint(block, 'messages', model)
  if (text !== undefined)
    return typeof text === 'string' && text.trim() !== ''
      ? undefined
      : `The text field in the ContentBlock object at ${where} is blank. Add text to the text field, and try again.`
  if (isObject(image)) {
    if (role !== 'user' || !['png', 'jpeg', 'gif', 'webp'].includes(String(image['format'])))
      return `Value at '${where}.image.format' failed to satisfy constraint: Member must satisfy enum value set: [jpeg, webp, png, gif]`
    const bytes = isObject(image['source']) ? String(image['source']['bytes']) : ''
    return bytes !== '' && bytes.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(bytes)
      ? undefined
      : 'Could not process image'
  }
  if (isObject(toolUse)) {
    if (role !== 'assistant') return `The ${where} toolUse is only allowed for the assistant role`
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(toolUse['toolUseId'])))
      return `Value at '${where}.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+`
    return isObject(toolUse['input'])
      ? undefined
      : `The format of the value at ${where}.toolUse.input is invalid. Provide a json object for the field and try again.`
  }
  if (isObject(toolResult)) {
    if (role !== 'user') return `The ${where} toolResult is only allowed for the user role`
    const content = list(toolResult['content'])
    if (content.length === 0 || content.some((each) => typeof each['text'] === 'string' && each['text'].trim() === ''))
      return `The text field in the ContentBlock object at ${where}.toolResult is blank.`
    return toolResult['status'] === undefined || toolResult['status'] === 'error' || toolResult['status'] === 'success'
      ? undefined
      : 'toolResult.status: expected success or error'
  }
  if (isObject(reasoning)) {
    if (role !== 'assistant') return `The ${where} reasoningContent is only allowed for the assistant role`
    if (typeof reasoning['redactedContent'] === 'string')
      return given.has(reasoning['redactedContent'])
        ? undefined
        : `${where}: Invalid \`data\` in \`redacted_thinking\` block`
    const said = reasoning['reasoningText']
    return isObject(said) && given.get(String(said['signature'])) === said['text']
      ? undefined
      : `${where}: Invalid \`signature\` in \`thinking\` block`
  }
  return `${where}: unknown block ${Object.keys(block).join(', ')}`
}
