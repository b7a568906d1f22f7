type Node = Readonly<Record<string, unknown>>
export interface ConfigKey {
  /** Dotted; `any` stands for a name that is free, such as that of a provider. */
  readonly key: string
  readonly node: Node
}

/** Every key that has a value in a JSON Schema of the configuration, with what the schema says of it. */
export function keysOf(schema: unknown, path: readonly string[] = []): readonly ConfigKey[] {
  const node = isNode(schema) ? schema : {}
  const properties = isNode(node['properties']) ? Object.entries(node['properties']) : []
  const rest = node['additionalProperties']
  // Sections of plugins that are not there are no keys.
  if (isNode(rest) && path.join('.') !== 'plugins') properties.push(['any', rest])
  return properties.length === 0
    ? path.length === 0 || isSection(node)
      ? []
      : [{ key: path.join('.'), node }]
    : properties.flatMap(([name, inner]) => keysOf(inner, [...path, name]))
}
const isSection = (node: Node): boolean => node['type'] === 'object' && isNode(node['properties'])
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value)
