import { isObject } from 'svc/sdk'

const MAX_DEPTH = 32
/** With all references written out; what describes more is not checked. */
const MAX_NODES = 2000
/** Regular expressions of a stranger can take for ever, comparing all items does, and references lead anywhere. */
const DROPPED: ReadonlySet<string> = new Set([
  'pattern',
  'patternProperties',
  'format',
  'uniqueItems',
  '$id',
  '$schema',
  '$anchor',
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$defs',
  'definitions',
])
/** Their keys are names of properties, not words of a schema. */
const MAPS: ReadonlySet<string> = new Set(['properties', 'dependentSchemas', 'dependentRequired', 'dependencies'])
/** Values, not schemas. */
const VALUES: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

/**
 * The schema with what is safe to check. References are written out, since a few that each name the next one twice
 * stand for more than can be checked in a lifetime; below one that leads back into itself everything is valid.
 */
export function safeSchema(schema: unknown): unknown {
  return new Expansion(schema).run()
}

class Expansion {
  readonly #root: unknown
  /** The references that lead to where it is. */
  readonly #path = new Set<string>()
  #nodes = 0
  constructor(root: unknown) {
    this.#root = root
  }

  run(): unknown {
    const made = this.#expand(this.#root, 0)
    return this.#nodes > MAX_NODES || !isObject(made) ? {} : made
  }

  #expand(schema: unknown, depth: number): unknown {
    if (++this.#nodes > MAX_NODES || depth > MAX_DEPTH) return true
    if (Array.isArray(schema)) return schema.map((item) => this.#expand(item, depth + 1))
    if (!isObject(schema)) return schema
    const { $ref: reference, ...words } = schema
    const made: Record<string, unknown> = {}
    for (const [word, value] of Object.entries(words))
      if (VALUES.has(word)) made[word] = value
      else if (MAPS.has(word) && isObject(value)) made[word] = this.#expandMap(value, depth + 1)
      else if (!DROPPED.has(word)) made[word] = this.#expand(value, depth + 1)
    if (reference === undefined) return made
    const target = this.#follow(reference, depth + 1)
    return Object.keys(made).length === 0 ? target : { allOf: [made, target] }
  }
  #expandMap(map: Readonly<Record<string, unknown>>, depth: number): object {
    return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, this.#expand(value, depth)]))
  }
  #follow(reference: unknown, depth: number): unknown {
    if (typeof reference !== 'string' || this.#path.has(reference)) return true
    this.#path.add(reference)
    try {
      return this.#expand(resolve(this.#root, reference), depth)
    } finally {
      this.#path.delete(reference)
    }
  }
}

/** What a JSON pointer into the document means; anything else means nothing here. */
function resolve(root: unknown, reference: string): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return true
  let at = root
  for (const part of reference.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    const inner: unknown =
      typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? at[key as never] : undefined
    if (inner === undefined) return true
    at = inner
  }
  return at
}
