import { createRequire } from 'node:module'
import type { toJsonSchema as ToJsonSchema } from '@valibot/to-json-schema'
import type { AnyTool } from './tool.ts'

/** JSON Schemas of inputs that are parsed elsewhere. */
const described = new WeakMap<object, object>()
/** The schema, which is described by this JSON Schema. */
export function describeInput<S extends AnyTool['input']>(schema: S, json: object): S {
  described.set(schema, json)
  return schema
}

let convert: typeof ToJsonSchema | undefined

/** JSON Schema (draft 7) of what a model must send. Parts that JSON Schema cannot say are left to the parser. */
export function toInputSchema(schema: AnyTool['input']): object {
  const known = described.get(schema)
  if (known) return known
  // Loaded when a model first sees a tool, and synchronously, because a list of tools is an ordinary value.
  convert ??= (createRequire(import.meta.url)('@valibot/to-json-schema') as { toJsonSchema: typeof ToJsonSchema })
    .toJsonSchema
  const { $schema: _, ...rest } = convert(schema, { target: 'draft-07', typeMode: 'input', errorMode: 'ignore' })
  return rest
}
