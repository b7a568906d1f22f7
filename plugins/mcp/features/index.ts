import { commandLine, Refusal } from 'svc/sdk'
import type { Fetch, Hooks, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Approvals } from '../../approvals/contract.ts'
import type { Workspaces } from '../../files/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { Screening } from '../../screening/contract.ts'
import type { UsageLedger } from '../../usage/contract.ts'
import type { Settings } from '../config.ts'
import type { ClientFeatures, ServerRequest } from '../connection/features.ts'
import type { McpObject } from '../contract.ts'
import type { OAuthLogins, PlatformFetch } from '../oauth/logins.ts'
import type { OAuthRecords } from '../oauth/record.ts'
import type { ServerConfig } from '../servers/spec.ts'
import { RequestLimits } from '../requests/limits.ts'
import { extraTools } from './extra-tools.ts'
import type { ToolPins } from './pins.ts'
import { screenTool } from './screen-tool.ts'

export interface FeaturesDeps {
  readonly settings: Settings
  readonly db: PluginDatabase
  readonly hooks: Pick<Hooks, 'check'>
  readonly agents: () => Agents | undefined
  readonly approvals: () => Approvals | undefined
  readonly inference: () => Inference | undefined
  readonly screening: () => Screening | undefined
  readonly usage: () => UsageLedger | undefined
  readonly workspaces: () => Workspaces | undefined
  readonly pins: ToolPins
  readonly logins: OAuthLogins
  readonly records: OAuthRecords
  readonly platformFetch: (server: ServerConfig, fetch: Fetch) => PlatformFetch
  readonly now: () => number
}

/** What this client offers to servers: roots, questions to people and models, logins, and what is kept of their tools. */
export function createFeatures(deps: FeaturesDeps): ClientFeatures {
  const { pins, logins, records } = deps
  const limits = new RequestLimits(deps.now)
  const refuseInjection = async (text: string, what: string): Promise<void> => {
    const found = await deps.screening()?.screen(text)
    if (found?.level === 'critical')
      throw new Refusal('forbidden', `${what} was refused, because it addresses the model: ${found.findings[0]?.rule}`)
  }
  const answers: Readonly<Record<ServerRequest['method'], (request: ServerRequest) => Promise<McpObject>>> = {
    async 'sampling/createMessage'(request) {
      const { createMessage } = await import('../requests/sampling.ts')
      return createMessage({ ...deps, limits, refuseInjection }, request)
    },
    async 'elicitation/create'(request) {
      const { elicit } = await import('../requests/elicitation.ts')
      return elicit({ ...deps, limits, refuseInjection }, request)
    },
    async 'roots/list'(request) {
      const { listRoots } = await import('../requests/roots.ts')
      return listRoots(deps.workspaces(), request)
    },
  }
  return {
    capabilities: ({ sampling, transport }) => ({
      elicitation: { form: { applyDefaults: true }, url: {} },
      ...(sampling && { sampling: {} }),
      // The paths of this machine mean nothing to another one.
      ...(transport === 'stdio' && { roots: {} }),
    }),
    handle: (request) => answers[request.method](request),
    async authProvider(server, fetch: Fetch) {
      // Whoever sends a key of its own in a header needs no login.
      if (Object.keys(server.headers).some((name) => name.toLowerCase() === 'authorization')) return undefined
      return logins.provider(server, deps.platformFetch(server, fetch))
    },
    async onListed(server, tools) {
      const screening = deps.screening()
      const screened = await Promise.all(tools.map((tool) => screenTool(screening, tool)))
      const changed = await pins.check(server.name, tools)
      return tools.map((tool, at) => {
        const found = screened[at] ?? { usable: true }
        if (!found.usable || !changed.has(tool.name)) return { tool, ...found }
        return {
          tool,
          usable: false,
          reason:
            `it changed since it was approved (${commandLine('approval list')}), ` +
            'or this server listed more than plugins.mcp.max_remembered_tools so far',
        }
      })
    },
    extraTools,
    kept: (server) => records.removeOthers(server),
    dropped: (server) => records.removeOf(server),
    async forget(server) {
      await Promise.all([pins.forget(server), records.remove(server)])
    },
  }
}
