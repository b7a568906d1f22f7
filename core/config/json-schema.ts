import type * as v from 'valibot'
import { ConfigSchema } from './schema.ts'
import { isTree } from './shape.ts'
import type { Schema } from './shape.ts'

/**
 * JSON Schema (draft-07) of `config.toml`, with the sections of the plugins given by name. Secrets are marked `writeOnly`; parts a
 * plugin's schema cannot say in JSON Schema are left open.
 */
export async function configJsonSchema(
  plugins: ReadonlyMap<string, Schema> = new Map(),
): Promise<Record<string, unknown>> {
  const { toJsonSchema } = await import('@valibot/to-json-schema')
  const convert = (schema: v.GenericSchema): Record<string, unknown> => {
    const { $schema: _, ...body } = toJsonSchema(schema, {
      target: 'draft-07',
      typeMode: 'input',
      errorMode: 'ignore',
    }) as Record<string, unknown>
    return mark(body)
  }
  const body = convert(ConfigSchema)
  const sections = isTree(body['properties']) ? body['properties'] : {}
  const own = isTree(sections['plugins']) ? sections['plugins'] : {}
  const known = isTree(own['properties']) ? own['properties'] : {}
  const added = Object.fromEntries([...plugins].map(([name, schema]) => [name, convert(schema)]))
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'svc configuration',
    ...body,
    properties: { ...sections, plugins: { ...own, properties: { ...known, ...added } } },
  }
}
/** Editors know `writeOnly`; the mark of `secret()` stays beside it. */
function mark(node: unknown): Record<string, unknown> {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit)
    if (!isTree(value)) return value
    const inner = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visit(item)]))
    return inner['secret'] === true ? { ...inner, writeOnly: true } : inner
  }
  return visit(node) as Record<string, unknown>
}
