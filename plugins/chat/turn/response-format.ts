import * as v from 'valibot'
import type { ResponseFormat } from 'svc/providers'
import { JsonObject, schemaFault } from 'svc/internal'
import { readJson } from 'svc/sdk'

const schema = v.pipe(
  JsonObject,
  v.transform((given): object => given),
)
const Named = v.object({ name: v.optional(v.string(), 'answer'), schema, strict: v.optional(v.nullable(v.boolean())) })
/** `text`, `json`, the manifest's `{type: "json_schema", …}` and `{json_schema: {…}}`, and OpenAI's shape. */
export const FormatInput = v.union(
  [
    v.pipe(
      v.picklist(['text']),
      v.transform(() => undefined),
    ),
    v.pipe(
      v.picklist(['json', 'json_object']),
      v.transform((): ResponseFormat => ({ type: 'json' })),
    ),
    v.pipe(
      v.object({ type: v.literal('text') }),
      v.transform(() => undefined),
    ),
    v.pipe(
      v.object({ type: v.picklist(['json', 'json_object']) }),
      v.transform((): ResponseFormat => ({ type: 'json' })),
    ),
    v.pipe(
      v.object({ json_schema: Named }),
      v.transform(({ json_schema: given }) => toFormat(given)),
    ),
    v.pipe(
      v.object({ type: v.literal('json_schema'), ...Named.entries }),
      v.transform((given) => toFormat(given)),
    ),
  ],
  'Expected "text", "json" or a JSON schema with a name and a schema',
)

function toFormat({ name, schema: given, strict }: v.InferOutput<typeof Named>): ResponseFormat {
  return { type: 'json_schema', name, schema: given, ...(typeof strict === 'boolean' ? { strict } : {}) }
}

export const TEXT_ONLY =
  'response_format: the built-in offline model writes text only; configure a provider to ask for a form'

/** Told to every model, because not every provider can be told by a parameter. */
export function instruction(format: ResponseFormat): string {
  const shape =
    format.type === 'json'
      ? 'a JSON object'
      : `a JSON value that fits this JSON schema:\n${JSON.stringify(format.schema)}`
  return (
    `\n\nYour final answer is read by a program. Answer with ${shape}\nand with nothing else: ` +
    'no explanation, no code fence.'
  )
}

/** The answer as JSON text, without a fence around it; or what is wrong with it, in words for the model. */
export async function checkAnswer(
  text: string,
  format: ResponseFormat,
): Promise<{ readonly text: string } | { readonly fault: string }> {
  const bare = text
    .trim()
    .replace(/^```(?:json)?\s*\n?/, '')
    .replace(/\n?```$/, '')
    .trim()
  let value: unknown
  try {
    value = readJson(bare)
  } catch (error) {
    return { fault: `it is not JSON (${error instanceof Error ? error.message : 'unreadable'})` }
  }
  if (format.type === 'json')
    return typeof value === 'object' && value !== null ? { text: bare } : { fault: 'it is not a JSON object' }
  const fault = await schemaFault(value, format.schema)
  return fault === undefined ? { text: bare } : { fault }
}
