import type { PluginStatus } from 'svc/internal'
import type { Plugin, Registered } from './schema.ts'

const SOCKET = 'WebSocket '

/** A plugin as the API shows it. */
export function toPlugin(status: PluginStatus): Plugin {
  const { name, version, state, source, requires, provides, ledger, reloads, error } = status
  return {
    name,
    display_name: displayName(name),
    version,
    state,
    source,
    path: source === 'built-in' ? null : status.folder,
    enabled: state !== 'disabled',
    requires: [...requires],
    provides: [...provides],
    ledger_size: ledger.length,
    registered: registeredBy(status),
    reloads,
    error: error ?? null,
  }
}

export function displayName(name: string): string {
  return name
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ')
}

function registeredBy({ name, ledger, pages }: PluginStatus): Registered {
  const labelsOf = (kind: string): string[] =>
    ledger
      .filter((entry) => entry.kind === kind)
      .map(({ label }) => label)
      .sort()
  const routes = labelsOf('route')
  return {
    routes: routes.filter((label) => !label.startsWith(SOCKET)),
    sockets: routes.filter((label) => label.startsWith(SOCKET)).map((label) => label.slice(SOCKET.length)),
    tools: labelsOf('tool'),
    hooks: labelsOf('hook'),
    jobs: labelsOf('job'),
    metrics: labelsOf('metric'),
    pages: pages.map(({ path, file }) => `/pages/${name}/${path}/${file.slice(file.lastIndexOf('/') + 1)}`),
  }
}
