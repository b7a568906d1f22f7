import { isObject } from '../schema/object.ts'
import { undecided } from './file-only.ts'
import type { KeyRule } from './file-only.ts'
import { wholeSchema } from './schema.ts'
import type { PluginSchemas } from './schema.ts'
import { isTree } from './shape.ts'
import type { Tree } from './shape.ts'

/**
 * JSON Schema (draft-07) of `config.toml` with the sections of these plugins. Secrets are marked `writeOnly`, and every
 * key says with `file_only` and `reason` whether the API may set it; parts a plugin's schema cannot say in JSON Schema
 * are left open.
 */
export async function configJsonSchema(plugins: readonly PluginSchemas[] = []): Promise<Record<string, unknown>> {
  const { toJsonSchema } = await import('@valibot/to-json-schema')
  const { $schema, ...body } = toJsonSchema(wholeSchema(plugins), {
    target: 'draft-07',
    typeMode: 'input',
    errorMode: 'ignore',
  }) as Tree
  return annotate({ $schema, title: 'svc configuration', ...body }, undecided)
}

/** Hands the marks of sections down to their keys. Editors know `writeOnly`; the mark of `secret()` stays beside it. */
function annotate(node: Tree, above: KeyRule): Record<string, unknown> {
  const rule: KeyRule =
    typeof node['file_only'] === 'boolean'
      ? { fileOnly: node['file_only'], reason: String(node['reason'] ?? '') }
      : above
  const each = (table: unknown): Tree =>
    Object.fromEntries(
      Object.entries(isObject(table) ? table : {}).map(([key, item]) => [
        key,
        annotate(isTree(item) ? item : {}, rule),
      ]),
    )
  return {
    ...node,
    file_only: rule.fileOnly,
    reason: rule.reason,
    ...(node['secret'] === true && { writeOnly: true }),
    ...(isTree(node['properties']) && { properties: each(node['properties']) }),
    ...(isTree(node['additionalProperties']) && {
      additionalProperties: annotate(node['additionalProperties'], rule),
    }),
    ...(isTree(node['items']) && { items: annotate(node['items'], rule) }),
  }
}
