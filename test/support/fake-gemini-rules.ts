/** The fields of generateContent that are looked at. Nothing about them is trusted. */
interface Part {
  text?: unknown
  thought?: unknown
  thoughtSignature?: unknown
  inlineData?: { mimeType?: unknown; data?: unknown }
  functionCall?: { id?: unknown; name?: unknown; args?: unknown }
  functionResponse?: { id?: unknown; name?: unknown; response?: unknown }
}
interface Content {
  role?: unknown
  parts?: Part[]
}
export interface GeminiBody {
  contents?: Content[]
  systemInstruction?: Content
  tools?: {
    functionDeclarations?: {
      name?: unknown
      description?: unknown
      parametersJsonSchema?: { type?: unknown; $schema?: unknown }
    }[]
  }[]
  generationConfig?: {
    temperature?: unknown
    maxOutputTokens?: unknown
    responseMimeType?: unknown
    responseJsonSchema?: unknown
    responseModalities?: unknown
    imageConfig?: { aspectRatio?: unknown; imageSize?: unknown }
    thinkingConfig?: { thinkingBudget?: unknown; thinkingLevel?: unknown; includeThoughts?: unknown }
  }
}
const FIELDS = {
  body: [
    'contents',
    'systemInstruction',
    'tools',
    'toolConfig',
    'safetySettings',
    'generationConfig',
    'cachedContent',
    'labels',
  ],
  generation: [
    'temperature',
    'topP',
    'topK',
    'maxOutputTokens',
    'stopSequences',
    'responseMimeType',
    'responseSchema',
    'responseJsonSchema',
    'thinkingConfig',
    'seed',
    'candidateCount',
    'presencePenalty',
    'frequencyPenalty',
    'responseModalities',
    'imageConfig',
  ],
  part: ['text', 'thought', 'thoughtSignature', 'inlineData', 'fileData', 'functionCall', 'functionResponse'],
  declaration: [
    'name',
    'description',
    'parameters',
    'parametersJsonSchema',
    'response',
    'responseJsonSchema',
    'behavior',
  ],
}
const unknown = (value: object | undefined, known: readonly string[], where: string): string | undefined => {
  const name = Object.keys(value ?? {}).find((key) => !known.includes(key))
  return name === undefined
    ? undefined
    : `Invalid JSON payload received. Unknown name "${name}"${where}: Cannot find field.`
}

const RATIOS = '1:1 1:4 1:8 2:3 3:2 3:4 4:1 4:3 4:5 5:4 8:1 9:16 16:9 21:9'.split(' ')
/** Why it would make no picture. Source: https://ai.google.dev/gemini-api/docs/image-generation */
function refusePicture(model: string, { generationConfig: generation, tools }: GeminiBody): string | undefined {
  const { responseModalities: modalities, imageConfig, responseMimeType } = generation ?? {}
  const wantsPicture = Array.isArray(modalities) && modalities.includes('IMAGE')
  if (
    modalities !== undefined &&
    (!Array.isArray(modalities) || modalities.some((one) => !/^(?:TEXT|IMAGE)$/.test(one)))
  )
    return "Invalid value at 'generation_config.response_modalities'"
  if (imageConfig && !wantsPicture) return 'Image config is set, and no image is asked for.'
  if (!wantsPicture) return undefined
  if (!/image|banana/.test(model))
    return 'The requested combination of response modalities (IMAGE) is not supported by the model.'
  if (tools || responseMimeType !== undefined) return 'Function calling and JSON mode are not enabled for this model.'
  const field = unknown(imageConfig, ['aspectRatio', 'imageSize'], " at 'generation_config.image_config'")
  if (field) return field
  const { aspectRatio, imageSize } = imageConfig ?? {}
  if (aspectRatio !== undefined && !RATIOS.includes(String(aspectRatio))) return 'aspect_ratio is not supported.'
  // Nano Banana 2.1 makes none so small.
  const sizes = ['1K', '2K', '4K', ...(model.includes('nano-banana-2') ? [] : ['512'])]
  if (imageSize !== undefined && !sizes.includes(String(imageSize))) return 'image_size is not supported.'
  return undefined
}

/** Why Google would answer 400, in its words; `undefined` when it would not. `signatures` are those it gave out. */
export function refuseGemini(
  model: string,
  text: string,
  body: GeminiBody,
  signatures: ReadonlySet<string>,
): string | undefined {
  // Protocol buffers hold text in UTF-8, which has no halves of characters.
  if (/(?<!\\)(?:\\\\)*\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])/i.test(text))
    return 'Invalid JSON payload received. Invalid unicode surrogate.'
  const generation = body.generationConfig
  const fields = unknown(body, FIELDS.body, '') ?? unknown(generation, FIELDS.generation, " at 'generation_config'")
  if (fields) return fields
  const version = Number(/^gemini-(\d+(?:\.\d+)?)/.exec(model)?.[1] ?? 0)
  const { temperature, maxOutputTokens, thinkingConfig, responseMimeType } = generation ?? {}
  if (temperature !== undefined && (typeof temperature !== 'number' || temperature < 0 || temperature > 2))
    return 'Unable to submit request because it has a temperature value outside the supported range from 0 to 2.'
  if (maxOutputTokens !== undefined && (!Number.isInteger(maxOutputTokens) || Number(maxOutputTokens) < 1))
    return 'max_output_tokens must be positive.'
  if (thinkingConfig) {
    if (version < 2.5) return 'Thinking is not enabled for this model.'
    if (thinkingConfig.thinkingBudget !== undefined && thinkingConfig.thinkingLevel !== undefined)
      return 'You can only set only one of thinking budget and thinking level.'
    if (
      thinkingConfig.thinkingLevel !== undefined &&
      (version < 3 || !['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'].includes(String(thinkingConfig.thinkingLevel)))
    )
      return 'Thinking level is not supported for this model.'
    if (thinkingConfig.thinkingBudget === 0 && model.includes('pro'))
      return 'Budget 0 is invalid. This model only works in thinking mode.'
  }
  if (responseMimeType === 'application/json' && body.tools && version < 3)
    return "Function calling with a response mime type: 'application/json' is unsupported"
  return refusePicture(model, body) ?? refuseTools(body.tools) ?? refuseContents(body, version >= 3, signatures)
}

function refuseTools(tools: GeminiBody['tools']): string | undefined {
  const names = new Set<unknown>()
  for (const declaration of (tools ?? []).flatMap((tool) => tool.functionDeclarations ?? [])) {
    const field = unknown(declaration, FIELDS.declaration, " at 'tools[0].function_declarations[0]'")
    if (field) return field
    const { name, parametersJsonSchema: schema } = declaration
    if (typeof name !== 'string' || !/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/.test(name))
      return `Invalid function name ${String(name)}. Must start with a letter or an underscore.`
    if (names.has(name)) return `Duplicate function declaration found: ${name}`
    names.add(name)
    if (schema !== undefined && (schema.type !== 'object' || '$schema' in schema))
      return `The schema of function ${name} must describe an object.`
  }
  return undefined
}

function refuseContents(
  { contents, systemInstruction }: GeminiBody,
  signed: boolean,
  signatures: ReadonlySet<string>,
): string | undefined {
  if (!Array.isArray(contents) || contents.length === 0)
    return 'GenerateContentRequest.contents: contents is not specified'
  if (systemInstruction && !systemInstruction.parts?.some(({ text }) => typeof text === 'string' && text !== ''))
    return 'GenerateContentRequest.system_instruction: text must not be empty'
  const isAnswers = (content: Content | undefined): boolean =>
    content?.parts?.some(({ functionResponse }) => functionResponse !== undefined) === true
  const running = contents.findLastIndex((content) => content.role === 'user' && !isAnswers(content))
  for (const [index, { role, parts }] of contents.entries()) {
    const where = `GenerateContentRequest.contents[${index}]`
    if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.'
    if (!Array.isArray(parts) || parts.length === 0) return `${where}.parts: contents.parts must not be empty.`
    for (const [at, part] of parts.entries()) {
      const problem = refusePart(part, `${where}.parts[${at}]`, signatures)
      if (problem) return problem
    }
    const calls = parts.flatMap(({ functionCall }) => (functionCall ? [functionCall] : []))
    if (calls.length === 0) continue
    if (role !== 'model' || contents[index - 1]?.role !== 'user')
      return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
    const answers =
      contents[index + 1]?.parts?.flatMap(({ functionResponse }) => (functionResponse ? [functionResponse] : [])) ?? []
    if (answers.length !== calls.length)
      return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
    if (answers.some(({ id, name }, at) => name !== calls[at]?.name || id !== calls[at]?.id))
      return 'Please ensure that function response turn comes immediately after a function call turn and matches it.'
    const first = parts.find(({ functionCall }) => functionCall)
    if (signed && index > running && typeof first?.thoughtSignature !== 'string')
      return `Function call is missing a thought_signature in functionCall parts. Additional data, function call \`default_api:${String(calls[0]?.name)}\`, position ${index + 1}.`
  }
  return isAnswers(contents[0])
    ? 'Please ensure that function response turn comes immediately after a function call turn.'
    : undefined
}

function refusePart(part: Part, where: string, signatures: ReadonlySet<string>): string | undefined {
  const field = unknown(part, FIELDS.part, ` at '${where}'`)
  if (field) return field
  const data = [part.text, part.inlineData, part.functionCall, part.functionResponse].filter((one) => one !== undefined)
  if (data.length !== 1 || (part.text === '' && part.thoughtSignature === undefined))
    return `${where}.data: required oneof field 'data' must have one initialized field`
  const { thoughtSignature: signature, inlineData: image, functionCall: call, functionResponse: answer } = part
  if (signature !== undefined && signature !== 'skip_thought_signature_validator' && !signatures.has(String(signature)))
    return 'Corrupted thought signature.'
  if (
    image &&
    (!/^image\/(?:png|jpeg|webp|heic|heif|gif)$/.test(String(image.mimeType)) ||
      !/^[A-Za-z0-9+/]+={0,2}$/.test(String(image.data)))
  )
    return 'Unable to process input image. Please retry or report.'
  if (
    call &&
    (typeof call.name !== 'string' || typeof call.args !== 'object' || call.args === null || Array.isArray(call.args))
  )
    return `Invalid value at '${where}.function_call.args'.`
  if (
    answer &&
    (typeof answer.name !== 'string' ||
      answer.name === '' ||
      typeof answer.response !== 'object' ||
      answer.response === null)
  )
    return `${where}.function_response.name: Name cannot be empty.`
  return undefined
}
