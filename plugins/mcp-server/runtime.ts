import { commandLine, Refusal } from 'svc/sdk'
import type { Logger, Reply } from 'svc/sdk'
import type { KeyValue } from '../kv/contract.ts'
import type { McpServers } from '../mcp/contract.ts'
import { announceChanges } from './announce.ts'
import { DaemonBackend } from './backend/daemon.ts'
import type { DaemonBackendDeps } from './backend/daemon.ts'
import { GatewayBackend } from './backend/gateway.ts'
import { Endpoint } from './http/endpoint.ts'
import type { McpHttpRequest } from './http/endpoint.ts'
import { SessionRegistry } from './http/session.ts'
import { agentResources } from './providers/agents.ts'
import { memoryResources } from './providers/memory.ts'
import { sessionResources } from './providers/sessions.ts'

export interface RuntimeDeps extends DaemonBackendDeps {
  readonly log: Pick<Logger, 'debug' | 'error'>
  readonly servers: () => McpServers | undefined
  readonly kv: () => KeyValue | undefined
}

/** All that is made when the first client comes. */
export class Runtime {
  readonly sessions: SessionRegistry
  readonly #deps: RuntimeDeps
  readonly #daemon: DaemonBackend
  readonly #endpoint: Endpoint
  readonly #gateways = new Map<string, Promise<{ readonly endpoint: Endpoint; readonly backend: GatewayBackend }>>()

  constructor(deps: RuntimeDeps) {
    const { agents, config, exports, hooks, kv, sessions } = deps
    this.#deps = deps
    exports.resources(agentResources(agents))
    exports.resources(sessionResources(agents, sessions, config.max_session_messages))
    exports.resources(memoryResources(agents, kv))
    announceChanges(hooks, exports, agents)
    this.sessions = new SessionRegistry(deps.config, deps.now)
    this.#daemon = new DaemonBackend(deps)
    this.#endpoint = new Endpoint({ ...deps, backend: this.#daemon, sessions: this.sessions })
  }

  async handle(request: McpHttpRequest, server: string | undefined): Promise<Reply> {
    return (server === undefined ? this.#endpoint : await this.#gateway(server)).handle(request)
  }
  /** What it offers may be another now: the next client is served by a new one. */
  async forget(server: string): Promise<void> {
    const gateway = this.#gateways.get(server)
    if (!gateway) return
    this.#gateways.delete(server)
    const { endpoint, backend } = await gateway
    for (const session of this.sessions.all()) if (session.backend === backend) await this.sessions.end(session)
    backend.close()
    await endpoint.close()
  }
  /** Its program was started anew. */
  async reconnected(server: string): Promise<void> {
    await (await this.#gateways.get(server))?.backend.reconnected()
  }
  async close(): Promise<void> {
    await this.sessions.endAll()
    await this.#endpoint.close()
    for (const server of this.#gateways.keys()) await this.forget(server).catch(() => undefined)
  }

  async #gateway(server: string): Promise<Endpoint> {
    const servers = this.#deps.servers()
    if (!servers || !(await servers.find(server)))
      throw new Refusal(
        'not_found',
        `There is no MCP server "${server}"; ${commandLine('mcp list')} shows those there are`,
      )
    let gateway = this.#gateways.get(server)
    if (!gateway) {
      gateway = this.#open(servers, server)
      this.#gateways.set(server, gateway)
      gateway.catch(() => this.#gateways.delete(server))
    }
    return (await gateway).endpoint
  }
  async #open(servers: McpServers, server: string) {
    const current = (): McpServers => {
      const now = this.#deps.servers()
      if (now) return now
      throw new Refusal('service_unavailable', 'The plugin mcp is not loaded; try again when it is')
    }
    const backend = new GatewayBackend(await servers.client(server), current, this.#daemon)
    return { backend, endpoint: new Endpoint({ ...this.#deps, backend, sessions: this.sessions }) }
  }
}
