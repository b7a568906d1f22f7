import type * as v from 'valibot'
import { undecided } from './file-only.ts'
import type { KeyRule } from './file-only.ts'
import { ConfigSchema } from './schema.ts'
import { isTree } from './shape.ts'
import type { Schema, Tree } from './shape.ts'

/** What is asked of a plugin: its schema, and which keys of it stand at the top of the file. */
export interface PluginSchema {
  readonly config: Schema
  readonly sections?: readonly string[]
}

/**
 * JSON Schema (draft-07) of `config.toml`, with the sections of the plugins given by name. Secrets are marked `writeOnly`, and every key
 * says with `file_only` and `reason` whether the API may set it; parts a plugin's schema cannot say in JSON Schema are left open.
 */
export async function configJsonSchema(
  plugins: ReadonlyMap<string, PluginSchema> = new Map(),
): Promise<Record<string, unknown>> {
  const { toJsonSchema } = await import('@valibot/to-json-schema')
  const convert = (schema: v.GenericSchema): Tree => {
    const { $schema: _, ...body } = toJsonSchema(schema, {
      target: 'draft-07',
      typeMode: 'input',
      errorMode: 'ignore',
    }) as Tree
    return body
  }
  const body = convert(ConfigSchema)
  const sections: Record<string, unknown> = { ...tableOf(body['properties']) }
  const own = tableOf(sections['plugins'])
  const added: Record<string, unknown> = {}
  for (const [name, { config, sections: atTop = [] }] of plugins) {
    const whole = convert(config)
    const { properties, required, ...rest } = whole
    const kept = Object.entries(tableOf(properties)).filter(([key]) => !atTop.includes(key))
    const needed = Array.isArray(required) ? required.filter((key) => !atTop.includes(String(key))) : []
    // What nobody has decided about a plugin's key is decided, and shown.
    added[name] = { ...marked(undecided), ...rest, properties: Object.fromEntries(kept), required: needed }
    for (const key of atTop) sections[key] = joined(tableOf(sections[key]), tableOf(tableOf(properties)[key]))
  }
  const known = tableOf(own['properties'])
  return annotate(
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      title: 'svc configuration',
      ...body,
      properties: { ...sections, plugins: { ...own, properties: { ...known, ...added } } },
    },
    undecided,
  )
}
const tableOf = (value: unknown): Tree => (isTree(value) ? value : {})
const marked = ({ fileOnly, reason }: KeyRule): Tree => ({ file_only: fileOnly, reason })

/** A section that the core checks and its owner too: what only the owner knows has the marks of any further key. */
function joined(core: Tree, owner: Tree): Tree {
  const further = tableOf(core['additionalProperties'])
  const [known, more] = [tableOf(core['properties']), tableOf(owner['properties'])]
  const added = Object.entries(more).filter(([key]) => !Object.hasOwn(known, key))
  return {
    ...core,
    ...(Object.keys(known).length > 0 && {
      properties: {
        ...known,
        ...Object.fromEntries(added.map(([key, node]) => [key, { ...further, ...tableOf(node) }])),
      },
    }),
    ...(isTree(core['additionalProperties']) &&
      isTree(owner['additionalProperties']) && {
        additionalProperties: joined(further, owner['additionalProperties']),
      }),
  }
}

/** Hands the marks of sections down to their keys. Editors know `writeOnly`; the mark of `secret()` stays beside it. */
function annotate(node: Tree, above: KeyRule): Record<string, unknown> {
  const rule: KeyRule =
    typeof node['file_only'] === 'boolean'
      ? { fileOnly: node['file_only'], reason: String(node['reason'] ?? '') }
      : above
  const each = (table: unknown): Tree =>
    Object.fromEntries(Object.entries(tableOf(table)).map(([key, item]) => [key, annotate(tableOf(item), rule)]))
  return {
    ...node,
    ...marked(rule),
    ...(node['secret'] === true && { writeOnly: true }),
    ...(isTree(node['properties']) && { properties: each(node['properties']) }),
    ...(isTree(node['additionalProperties']) && {
      additionalProperties: annotate(node['additionalProperties'], rule),
    }),
    ...(isTree(node['items']) && { items: annotate(node['items'], rule) }),
  }
}
