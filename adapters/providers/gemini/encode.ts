import type { CompletionRequest, Part, ToolCall, Turn } from 'svc/providers'
import { readReplay } from './replay.ts'
import type { WirePart } from './wire.ts'

/**
 * Stands for a signature that is not there, as in a conversation that another model began: newer models refuse the
 * calls of a running turn
 * without one. Source: https://ai.google.dev/gemini-api/docs/thought-signatures
 */
const NO_SIGNATURE = 'skip_thought_signature_validator'

/** The body of generateContent. */
export function encode(request: CompletionRequest): string {
  const { model, system, tools, maxTokens, temperature, extra } = request
  const generationConfig = {
    ...objectOf(extra?.generationConfig),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...thinking(request),
    ...format(request),
  }
  return wellFormed(
    JSON.stringify({
      ...extra,
      ...(system !== '' && { systemInstruction: { parts: [{ text: system }] } }),
      contents: contents(request.turns, isSigned(model)),
      ...(tools.length > 0 && {
        tools: [
          {
            functionDeclarations: tools.map(({ name, description, input }) => ({
              name,
              description,
              parametersJsonSchema: schemaOf(input),
            })),
          },
        ],
      }),
      generationConfig,
    }),
  )
}

/** Google refuses half a character, which JSON writes as an escape; nothing else is written as one of these. */
function wellFormed(json: string): string {
  return json.includes('\\ud')
    ? json.replaceAll(/\\\\|\\ud[0-9a-f]{3}/g, (found) => (found === '\\\\' ? found : '\\ufffd'))
    : json
}

/** The main number of a Gemini model; the moving names mean the newest. `undefined` for others, such as Gemma. */
function generation(model: string): number | undefined {
  const found = /(?:^|\/)gemini-(?:(\d+(?:\.\d+)?)|(?:pro|flash|flash-lite)-latest)/.exec(model)
  return found ? Number(found[1] ?? 3) : undefined
}
const isSigned = (model: string): boolean => (generation(model) ?? 0) >= 3

/** Generation 2.5 takes a budget, later ones a level; earlier ones cannot think and refuse to be told. */
function thinking({ model, thinking: wanted }: CompletionRequest): object {
  const version = generation(model)
  if (wanted === undefined || version === undefined || version < 2.5) return {}
  if (version >= 3)
    return { thinkingConfig: wanted ? { thinkingLevel: 'HIGH', includeThoughts: true } : { thinkingLevel: 'LOW' } }
  // Pro cannot be told not to think at all.
  return {
    thinkingConfig: wanted
      ? { thinkingBudget: -1, includeThoughts: true }
      : { thinkingBudget: model.includes('pro') ? 128 : 0 },
  }
}

/** Before generation 3 a model takes either tools or a format; the caller checks the answer in any case. */
function format({ model, responseFormat, tools }: CompletionRequest): object {
  if (!responseFormat || (tools.length > 0 && !isSigned(model))) return {}
  return {
    responseMimeType: 'application/json',
    ...(responseFormat.type === 'json_schema' && { responseJsonSchema: schemaOf(responseFormat.schema) }),
  }
}

/** JSON Schema as it is: Google takes most of it and ignores the rest. The name of the dialect is refused. */
function schemaOf(input: object): object {
  const { $schema: _, ...schema } = { type: 'object', ...input } as Readonly<Record<string, unknown>>
  return schema
}

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: object[]
  readonly answers?: boolean
}

function contents(turns: readonly Turn[], signed: boolean): readonly object[] {
  const all: Content[] = []
  const current = turns.findLastIndex(({ role }) => role === 'user')
  /** The vendor's own ids of the calls of the last answer. */
  let ids = new Map<string, string>()
  for (const [at, turn] of turns.entries()) {
    const last = all.at(-1)
    if (turn.role === 'tool') {
      const id = ids.get(turn.callId)
      const part = {
        functionResponse: {
          ...(id !== undefined && { id }),
          name: turn.tool,
          response: { [turn.failed ? 'error' : 'output']: turn.text },
        },
      }
      // The answers to parallel calls belong together.
      if (last?.answers) last.parts.push(part)
      else all.push({ role: 'user', parts: [part], answers: true })
    } else if (turn.role === 'assistant') {
      const encoded = answer(turn, signed && at > current)
      ids = encoded.ids
      if (encoded.parts.length > 0) all.push({ role: 'model', parts: encoded.parts })
    } else all.push({ role: 'user', parts: spoken(turn.parts) })
  }
  // A conversation whose beginning is gone may begin with an answer, and calls have to follow something.
  if (all[0]?.role !== 'user' || all[0].answers) all.unshift({ role: 'user', parts: [{ text: '…' }] })
  return all.map(({ role, parts }) => ({ role, parts }))
}

function spoken(parts: readonly Part[]): object[] {
  const wire = parts.flatMap((part): object[] => {
    if (part.type === 'image') return [{ inlineData: { mimeType: part.mime, data: part.base64 } }]
    return part.text === '' ? [] : [{ text: part.text }]
  })
  return wire.length > 0 ? wire : [{ text: ' ' }]
}

function answer(
  { text, calls, replay }: Extract<Turn, { role: 'assistant' }>,
  wantsSignature: boolean,
): { parts: object[]; ids: Map<string, string> } {
  const ids = new Map<string, string>()
  const original = readReplay(replay, calls)
  if (original) {
    let at = 0
    for (const { functionCall } of original) {
      if (!functionCall) continue
      const id = calls[at++]?.id
      if (id !== undefined && functionCall.id) ids.set(id, functionCall.id)
    }
    return { parts: [...original], ids }
  }
  const parts: WirePart[] = calls.map(({ name, args }, index) => ({
    functionCall: { name, args: argsOf(args) },
    ...(wantsSignature && index === 0 && { thoughtSignature: NO_SIGNATURE }),
  }))
  return { parts: text === '' ? parts : [{ text: text }, ...parts], ids }
}

/** Arguments have to be an object; what is none goes along in one. */
function argsOf(args: ToolCall['args']): Record<string, unknown> {
  if (args === undefined || args === null) return {}
  return typeof args === 'object' && !Array.isArray(args) ? { ...args } : { input: args }
}
function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}
