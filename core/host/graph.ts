/** A plugin in the dependency graph: ids of services. */
export interface Node {
  readonly name: string
  readonly requires: readonly string[]
  readonly provides: readonly string[]
}
export interface Plan {
  /** Names, each after everything it requires; otherwise in the order given. */
  readonly order: readonly string[]
  /** Why the others cannot be loaded, by name. */
  readonly refused: ReadonlyMap<string, string>
}

/**
 * Orders plugins by the services they require. `present` are the ids that exist already; `unavailable` says why an id
 * is missing and which plugin would provide it.
 */
export function plan(
  nodes: readonly Node[],
  present: ReadonlySet<string>,
  unavailable: ReadonlyMap<string, string> = new Map(),
): Plan {
  const refused = new Map<string, string>()
  const owners = new Map<string, Node>()
  for (const node of nodes) {
    for (const id of node.provides) {
      const other = present.has(id) ? 'a plugin that is loaded' : owners.get(id) && `plugin "${owners.get(id)?.name}"`
      if (other) refused.set(node.name, `service "${id}" is provided by ${other} already`)
    }
    if (!refused.has(node.name)) for (const id of node.provides) owners.set(id, node)
  }

  const order: string[] = []
  const state = new Map<string, 'open' | 'done'>()
  const visit = (node: Node, path: readonly Node[]): void => {
    if (state.has(node.name) || refused.has(node.name)) return
    state.set(node.name, 'open')
    for (const id of node.requires) {
      if (present.has(id)) continue
      const owner = owners.get(id)
      if (!owner) {
        refused.set(node.name, missing(id, unavailable.get(id)))
        continue
      }
      const start = owner === node ? path.length : path.indexOf(owner)
      if (start !== -1) {
        const cycle = [...path, node].slice(start)
        const names = [...cycle, owner].map(({ name }) => name).join(' -> ')
        for (const { name } of cycle) refused.set(name, `plugins require each other: ${names}`)
        continue
      }
      visit(owner, [...path, node])
      const reason = refused.get(owner.name)
      if (reason && !refused.has(node.name))
        refused.set(node.name, `needs service "${id}" of plugin "${owner.name}", which is not loaded: ${reason}`)
    }
    state.set(node.name, 'done')
    if (!refused.has(node.name)) order.push(node.name)
  }
  for (const node of nodes) visit(node, [])
  // A plugin may have been placed before the cycle behind it was found.
  return { order: order.filter((name) => !refused.has(name)), refused }
}

function missing(id: string, reason: string | undefined): string {
  return reason ? `needs service "${id}": ${reason}` : `needs service "${id}", which no plugin provides`
}

/** Names of those that directly or indirectly require a service of this one, in the order given. */
export function dependentsOf(name: string, nodes: readonly Node[]): readonly string[] {
  const affected = new Set([name])
  for (let grew = true; grew;) {
    grew = false
    const ids = new Set(nodes.filter((node) => affected.has(node.name)).flatMap((node) => node.provides))
    for (const node of nodes) {
      if (affected.has(node.name) || !node.requires.some((id) => ids.has(id))) continue
      affected.add(node.name)
      grew = true
    }
  }
  affected.delete(name)
  return nodes.filter((node) => affected.has(node.name)).map((node) => node.name)
}
