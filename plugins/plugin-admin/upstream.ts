import type { PluginStatus } from 'svc/internal'

/** The plugins whose unloading unloads `name` too: everything it requires, recursively. */
export function upstream(
  plugins: readonly Pick<PluginStatus, 'name' | 'requires' | 'provides'>[],
  name: string,
): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (user: string): void => {
    for (const service of plugins.find((plugin) => plugin.name === user)?.requires ?? []) {
      for (const provider of plugins) {
        if (!provider.provides.includes(service) || found.has(provider.name)) continue
        found.add(provider.name)
        visit(provider.name)
      }
    }
  }
  visit(name)
  return found
}
