import { commandLine } from 'svc/sdk'
import type { McpServerView } from '../mcp/contract.ts'
import type { Template } from './catalog/template.ts'
import type { IntegrationEntry } from './contract.ts'
import type { HealthMonitor } from './health.ts'
import type { Integration } from './service.ts'
import { requiredVariables, takesCredentials } from './variables.ts'

const usable = (server: McpServerView | undefined): number => server?.tools.filter((tool) => tool.usable).length ?? 0

function errorOf({ state, template, server, installed }: Integration): string | null {
  if (server === undefined) return 'its MCP server was removed'
  if (state === 'setup') return `sign in first: ${commandLine(`mcp login ${installed.id}`)}`
  if (template === undefined && state !== 'ready') return `its template "${installed.template}" is gone`
  return state === 'error' ? (server.error ?? 'it does not answer health checks') : null
}

export function toItem(integration: Integration) {
  const { installed, template, server, state } = integration
  return {
    id: installed.id,
    template: installed.template,
    name: installed.name,
    description: template?.description ?? '',
    icon: template?.icon ?? '',
    category: template?.category ?? '',
    status: state,
    tool_count: usable(server),
    installed_at: installed.installed_at,
    error: errorOf(integration),
  }
}

function toVariables(template: Template | undefined) {
  if (template === undefined) return []
  const required = new Set(requiredVariables(template).map(({ name }) => name))
  const { id: clientId, secret: clientSecret } = template.oauth?.client ?? {}
  return template.required_env.map(({ name, label, help, is_secret: isSecret, get_url: url, default: fallback }) => ({
    name,
    label,
    help,
    is_secret: isSecret,
    get_url: url ?? null,
    required: required.has(name),
    for_login: name === clientId || name === clientSecret,
    default: fallback ?? null,
  }))
}

export function toDetail(integration: Integration) {
  const { template, server } = integration
  return {
    ...toItem(integration),
    required_env: toVariables(template),
    has_oauth: template?.oauth !== undefined,
    setup_instructions: template?.setup_instructions ?? '',
    server: server === undefined ? null : toServer(server),
    tools: (server?.tools ?? []).map(({ name, description, usable: isUsable, reason }) => ({
      name,
      description,
      usable: isUsable,
      reason,
    })),
  }
}
function toServer(server: McpServerView) {
  const { transport, state, trust, command, url, pid, restarts, calls, failed_calls: failed } = server
  return {
    transport,
    state,
    trust,
    command,
    args: [...server.args],
    url,
    env: [...server.env],
    network: [...server.network],
    pid,
    restarts,
    calls,
    failed_calls: failed,
  }
}

export function toAvailable(template: Template, integrations: readonly Integration[]) {
  const added = integrations.find(({ installed }) => installed.template === template.id)
  return {
    id: template.id,
    name: template.name,
    description: template.description,
    icon: template.icon,
    category: template.category,
    tags: [...template.tags],
    installed: added !== undefined,
    status: added?.state ?? ('available' as const),
    transport: template.transport.type,
    required_env: toVariables(template),
    has_oauth: template.oauth !== undefined,
    needs_login: !takesCredentials(template),
    setup_instructions: setupOf(template),
  }
}

/** The words of the template, and what a program that is not installed is run with. */
function setupOf({ setup_instructions: words, transport }: Template): string {
  if (transport.type !== 'stdio' || transport.package === undefined) return words
  const { runner, name, version } = transport.package
  return (
    `${words}${words === '' ? '' : ' '}The program ${transport.command} is used where it is installed; ` +
    `else ${runner} fetches ${name} ${version}.`
  )
}

/** Whether every word occurs in it. */
export function matches(
  template: Template,
  { category, q }: { readonly category?: string | undefined; readonly q?: string | undefined },
): boolean {
  if (category !== undefined && template.category !== category) return false
  const text = [template.id, template.name, template.description, ...template.tags].join(' ').toLowerCase()
  return (q ?? '')
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

export function toHealth({ installed, server, state }: Integration, monitor: HealthMonitor) {
  const health = monitor.health(installed.id)
  return {
    id: installed.id,
    status: state,
    tool_count: usable(server),
    last_ok: health.lastOk,
    last_error: health.lastError ?? server?.error ?? null,
    consecutive_failures: health.failures,
    reconnecting: health.isReconnecting,
    reconnect_attempts: health.attempts,
    connected_since: server?.connected_since ?? null,
  }
}

export function toAdded({ installed, server, state }: Integration) {
  const count = usable(server)
  return {
    id: installed.id,
    status: 'installed' as const,
    state,
    connected: server?.connected ?? false,
    tool_count: count,
    message:
      state === 'setup'
        ? `Sign in to use it: ${commandLine(`mcp login ${installed.id}`)}`
        : `Agents can use ${count === 1 ? 'one tool' : `${count} tools`} of it`,
  }
}

export function toReconnected(integration: Integration) {
  const { installed, server } = integration
  return {
    id: installed.id,
    status: statusOf(server),
    tool_count: usable(server),
    error: errorOf(integration),
  }
}
function statusOf(server: McpServerView | undefined) {
  switch (server?.state) {
    case 'login_required':
    case 'disabled':
      return server.state
    case 'error':
    case undefined:
      return 'error' as const
    default:
      return 'connected' as const
  }
}

export function toEntry(integration: Integration): IntegrationEntry {
  const { installed, template, server, state } = integration
  return {
    ...(template === undefined ? unknownEntry(installed.template) : templateEntry(template)),
    id: installed.id,
    name: installed.name,
    state,
    installed: true,
    toolCount: usable(server),
    installedAt: installed.installed_at,
    error: errorOf(integration),
  }
}
const unknownEntry = (template: string) => ({
  template,
  description: '',
  category: '',
  icon: '',
  tags: [],
  requiredEnv: [],
  hasOauth: false,
  setupInstructions: '',
})
export function templateEntry(template: Template): IntegrationEntry {
  return {
    id: template.id,
    template: template.id,
    name: template.name,
    description: template.description,
    category: template.category,
    icon: template.icon,
    tags: template.tags,
    state: 'available',
    installed: false,
    toolCount: 0,
    installedAt: null,
    requiredEnv: template.required_env.map(({ name }) => name),
    hasOauth: template.oauth !== undefined,
    setupInstructions: setupOf(template),
    error: null,
  }
}
