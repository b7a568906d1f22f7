import { isObject } from 'svc/sdk'
import { objectArguments, wellFormedJson } from 'svc/providers'
import type { CompletionRequest, Part, Turn } from 'svc/providers'
import { readReplay } from './replay.ts'
import type { WirePart } from './wire.ts'

/**
 * Replaces a missing signature, as in a conversation that another model began: newer models refuse the calls of the
 * current turn without one. Source: https://ai.google.dev/gemini-api/docs/thought-signatures
 */
const NO_SIGNATURE = 'skip_thought_signature_validator'

/** The body of generateContent. */
export function encode(request: CompletionRequest): string {
  const { model, system, tools, maxTokens, temperature, extra } = request
  const generationConfig = {
    ...(isObject(extra?.generationConfig) && extra.generationConfig),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...thinkingFields(request),
    ...format(request),
  }
  return wellFormedJson(
    JSON.stringify({
      ...extra,
      ...(system !== '' && { systemInstruction: { parts: [{ text: system }] } }),
      contents: contents(request.turns, needsSignatures(model)),
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

/** The generation of a Gemini model; `-latest` means the newest. `undefined` for others, such as Gemma. */
function generation(model: string): number | undefined {
  const found = /(?:^|\/)gemini-(?:(\d+(?:\.\d+)?)|(?:pro|flash|flash-lite)-latest)/.exec(model)
  return found ? Number(found[1] ?? 3) : undefined
}
const needsSignatures = (model: string): boolean => (generation(model) ?? 0) >= 3

/** Generation 2.5 takes a budget, later ones a level; earlier ones cannot think and refuse the field. */
function thinkingFields({ model, thinking }: CompletionRequest): object {
  const version = generation(model)
  if (thinking === undefined || version === undefined || version < 2.5) return {}
  if (version >= 3)
    return { thinkingConfig: thinking ? { thinkingLevel: 'HIGH', includeThoughts: true } : { thinkingLevel: 'LOW' } }
  // Thinking cannot be switched off in Pro models.
  return {
    thinkingConfig: thinking
      ? { thinkingBudget: -1, includeThoughts: true }
      : { thinkingBudget: model.includes('pro') ? 128 : 0 },
  }
}

/** Before generation 3 a model takes either tools or a format; the caller checks the answer in any case. */
function format({ model, responseFormat, tools }: CompletionRequest): object {
  if (!responseFormat || (tools.length > 0 && !needsSignatures(model))) return {}
  return {
    responseMimeType: 'application/json',
    ...(responseFormat.type === 'json_schema' && { responseJsonSchema: schemaOf(responseFormat.schema) }),
  }
}

/** Google supports most of JSON Schema and ignores the rest, but refuses `$schema`. */
function schemaOf(input: object): object {
  const { $schema: _, ...schema } = { type: 'object', ...input } as Readonly<Record<string, unknown>>
  return schema
}

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: object[]
  readonly hasResults?: boolean
}

function contents(turns: readonly Turn[], withSignatures: boolean): readonly object[] {
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
      // The results of parallel calls are one message.
      if (last?.hasResults) last.parts.push(part)
      else all.push({ role: 'user', parts: [part], hasResults: true })
    } else if (turn.role === 'assistant') {
      const encoded = modelContent(turn, withSignatures && at > current)
      ids = encoded.ids
      if (encoded.parts.length > 0) all.push({ role: 'model', parts: encoded.parts })
    } else all.push({ role: 'user', parts: userParts(turn.parts) })
  }
  // A shortened conversation may begin with an answer, and a call has to follow a message of the user.
  if (all[0]?.role !== 'user' || all[0].hasResults) all.unshift({ role: 'user', parts: [{ text: '…' }] })
  return all.map(({ role, parts }) => ({ role, parts }))
}

function userParts(parts: readonly Part[]): object[] {
  const wire = parts.flatMap((part): object[] => {
    if (part.type === 'image') return [{ inlineData: { mimeType: part.mime, data: part.base64 } }]
    return part.text === '' ? [] : [{ text: part.text }]
  })
  return wire.length > 0 ? wire : [{ text: ' ' }]
}

function modelContent(
  { text, calls, replay }: Extract<Turn, { role: 'assistant' }>,
  needsSignature: boolean,
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
    functionCall: { name, args: objectArguments(args) },
    ...(needsSignature && index === 0 && { thoughtSignature: NO_SIGNATURE }),
  }))
  return { parts: text === '' ? parts : [{ text }, ...parts], ids }
}
