import type * as v from 'valibot'
import type { PluginStatus } from 'svc/internal'
import type { PageDeclaration } from 'svc/sdk'
import type { IntegrationEntry } from '../integrations/contract.ts'
import type { Extension, Origin, Plugin, Registered } from './schema.ts'
import type { Installed } from './store.ts'

const SOCKET = 'WebSocket '

/** A plugin as the API shows it. */
export function toPlugin(status: PluginStatus): Plugin {
  const { name, version, state, source, requires, provides, ledger, reloads, isolation, access, error } = status
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
    isolation,
    // What was never read has declared nothing.
    access: version === '' ? null : access,
    permissions: [...status.permissions],
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
  // They are registered with a service of another plugin, and owned under this label.
  const namesOf = (what: string): string[] =>
    labelsOf('own').flatMap((label) => (label.startsWith(`${what} `) ? label.slice(what.length + 1) : []))
  const routes = labelsOf('route')
  return {
    routes: routes.filter((label) => !label.startsWith(SOCKET)),
    sockets: routes.filter((label) => label.startsWith(SOCKET)).map((label) => label.slice(SOCKET.length)),
    tools: labelsOf('tool'),
    hooks: labelsOf('hook'),
    jobs: labelsOf('job'),
    channels: namesOf('channel'),
    providers: namesOf('provider'),
    metrics: labelsOf('metric'),
    pages: pages.map((page) => `/pages/${name}/${page.path}/${pageFileName(page)}`),
  }
}

export function toOrigin(entry: Installed | undefined): v.InferOutput<typeof Origin> | null {
  if (!entry) return null
  const { source, hash, signed_by, permissions, installed_at, updated_at } = entry
  return { source, hash, signed_by, accepted_permissions: [...permissions], installed_at, updated_at }
}

/** An integration, as the catalogue of extensions shows it. */
export function integrationExtension(entry: IntegrationEntry): Extension {
  return {
    name: entry.id,
    kind: 'integration',
    display_name: entry.name,
    description: entry.description,
    icon: entry.icon,
    category: entry.category,
    status: entry.state,
    tags: [...entry.tags],
    installed: entry.installed,
    tool_count: entry.toolCount,
    installed_at: entry.installedAt,
  }
}

/** A plugin from outside, as the catalogue of extensions shows it. */
export function toExtension(status: PluginStatus, entry: Installed | undefined): Extension {
  const { name, state } = status
  const isChannel = name.startsWith('channel-')
  return {
    name,
    kind: 'plugin',
    display_name: displayName(name),
    description: '',
    icon: '',
    category: isChannel ? 'channel' : name.startsWith('provider-') ? 'provider' : 'plugin',
    status: state === 'loaded' ? 'ready' : state,
    tags: [],
    installed: true,
    tool_count: status.ledger.filter(({ kind }) => kind === 'tool').length,
    installed_at: entry?.installed_at ?? null,
  }
}

/** As its address ends. */
function pageFileName(page: PageDeclaration): string {
  return 'file' in page && page.file !== undefined ? page.file.slice(page.file.lastIndexOf('/') + 1) : 'index.html'
}
