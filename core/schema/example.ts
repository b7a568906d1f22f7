import { isObject } from './object.ts'
import type { JsonObject } from './json-schema.ts'

/** What stands for a text of a certain name; anything else is the word itself. */
const texts: Readonly<Record<string, string>> = {
  name: 'scribe',
  agent_name: 'scribe',
  model: 'gpt-5-mini',
  provider: 'openai',
  message: 'What time is it?',
  response: 'It is noon.',
  text: 'It is noon.',
  content: 'It is noon.',
  path: 'notes/today.md',
  filename: 'notes.md',
  content_type: 'text/plain',
  mime_type: 'text/plain',
  version: '1.0.0',
  label: 'errands',
  tool: 'kv_get',
  key: 'theme',
  role: 'user',
  description: 'Takes notes.',
  address: '127.0.0.1',
  color: '#5533ff',
  emoji: '🪶',
  cron: '0 9 * * *',
}
const formats: Readonly<Record<string, string>> = {
  uuid: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d',
  'date-time': '2026-01-01T09:00:00.000Z',
  date: '2026-01-01',
  uri: 'https://example.org/hook',
  email: 'ada@example.org',
  ipv4: '192.0.2.1',
  binary: 'bytes',
}
/** Deeper than that an example tells nothing more. */
const depthLimit = 6

/**
 * A value the schema (dialect of OpenAPI 3.0) describes, for readers of the document. `brief` leaves out what need not
 * be sent.
 * `undefined` when none can be told from the schema alone.
 */
export function exampleOf(
  schema: JsonObject,
  components: JsonObject,
  options: { readonly brief?: boolean } = {},
): unknown {
  const make = (given: JsonObject, name: string, depth: number): unknown => {
    const node = resolve(given, components)
    if (node['example'] !== undefined) return node['example']
    if (node['default'] !== undefined) return node['default']
    if (Array.isArray(node['enum'])) return node['enum'][0]
    if (depth > depthLimit) return node['nullable'] === true ? null : undefined
    const variants = node['anyOf'] ?? node['oneOf']
    if (Array.isArray(variants))
      return variants
        .filter(isObject)
        .map((variant) => make(variant, name, depth + 1))
        .find((value) => value !== undefined)
    if (Array.isArray(node['allOf']))
      return Object.assign({}, ...node['allOf'].filter(isObject).map((part) => make(part, name, depth + 1)))
    switch (node['type']) {
      case 'string':
        return textOf(node, name)
      case 'integer':
      case 'number':
        return numberOf(node)
      case 'boolean':
        return true
      case 'array':
        return listOf(node, name, depth)
      case 'object':
        return objectOf(node, depth)
      default:
        return node['nullable'] === true ? null : node['type'] === undefined ? (texts[name] ?? 'anything') : undefined
    }
  }
  const listOf = (node: JsonObject, name: string, depth: number): unknown => {
    const item = isObject(node['items']) ? make(node['items'], name.replace(/s$/, ''), depth + 1) : undefined
    return item === undefined ? [] : [item]
  }
  const objectOf = (node: JsonObject, depth: number): unknown => {
    const required: readonly unknown[] = Array.isArray(node['required']) ? node['required'] : []
    const properties = isObject(node['properties']) ? Object.entries(node['properties']) : []
    const out: Record<string, unknown> = {}
    for (const [name, inner] of properties) {
      if (!isObject(inner) || (options.brief === true && !required.includes(name))) continue
      const value = make(inner, name, depth + 1)
      if (value !== undefined) out[name] = value
      else if (required.includes(name)) return undefined
    }
    if (properties.length === 0 && isObject(node['additionalProperties'])) {
      const value = make(node['additionalProperties'], 'name', depth + 1)
      if (value !== undefined) out['name'] = value
    }
    return out
  }
  return make(schema, '', 0)
}

function resolve(node: JsonObject, components: JsonObject): JsonObject {
  const name = typeof node['$ref'] === 'string' ? (node['$ref'].split('/').at(-1) ?? '') : undefined
  const target = name === undefined ? node : components[name]
  return isObject(target) ? target : {}
}

function textOf(node: JsonObject, name: string): string | undefined {
  const [min, max] = [
    typeof node['minLength'] === 'number' ? node['minLength'] : 0,
    typeof node['maxLength'] === 'number' ? node['maxLength'] : Infinity,
  ]
  const byName =
    texts[name] ??
    (/(^|_)id$/.test(name)
      ? formats['uuid']
      : /_(at|until|since)$|^(timestamp|time)$/.test(name)
        ? formats['date-time']
        : /(^|_)url$/.test(name)
          ? formats['uri']
          : name.replaceAll('_', ' '))
  const candidates = [
    typeof node['format'] === 'string' ? formats[node['format']] : undefined,
    byName,
    name,
    ...Object.values(formats),
    'text',
    'a',
    'A1',
    '1',
  ]
  const pattern = typeof node['pattern'] === 'string' ? node['pattern'] : undefined
  return candidates.find(
    (text) =>
      text !== undefined &&
      text.length >= min &&
      text.length <= max &&
      (pattern === undefined || matches(pattern, text)),
  )
}
/** The pattern is one of our own schemas. */
function matches(pattern: string, text: string): boolean {
  return new RegExp(pattern, 'u').test(text)
}
function numberOf(node: JsonObject): number {
  const bound = (key: string): number | undefined => (typeof node[key] === 'number' ? node[key] : undefined)
  const max = bound('maximum') ?? Infinity
  return Math.min(Math.max(bound('minimum') ?? 1, 1 <= max ? 1 : -Infinity), max)
}
