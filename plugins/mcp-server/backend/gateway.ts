import { Refusal } from 'svc/sdk'
import type { McpConnection, McpServers } from '../../mcp/contract.ts'
import type { McpObject } from '../contract.ts'
import type { McpChanged } from '../exports.ts'
import type { McpBackend, McpCall } from './backend.ts'
import type { DaemonBackend } from './daemon.ts'

type Listener = (changed: McpChanged | { readonly message: McpObject }) => void

/**
 * One MCP server of the daemon under its own names. Its tools are called as the acting agent calls them; everything
 * else goes through as it is.
 */
export class GatewayBackend implements McpBackend {
  readonly info: McpBackend['info']
  readonly instructions: string | undefined
  readonly capabilities: McpObject
  readonly #name: string
  readonly #servers: McpServers
  readonly #daemon: DaemonBackend
  readonly #listeners = new Set<Listener>()
  /** Followers by resource. */
  readonly #followers = new Map<string, number>()
  #unfollow: () => unknown

  constructor(connection: McpConnection, servers: McpServers, daemon: DaemonBackend) {
    const { name, version, title } = connection.serverInfo
    this.info = {
      name: String(name ?? connection.server),
      version: String(version ?? ''),
      ...(typeof title === 'string' && { title }),
    }
    this.instructions = connection.instructions
    const { tools, resources, prompts, completions, logging } = connection.capabilities
    this.capabilities = Object.fromEntries(
      Object.entries({ tools: tools && { listChanged: true }, resources, prompts, completions, logging }).filter(
        ([, value]) => value !== undefined,
      ),
    )
    this.#name = connection.server
    this.#servers = servers
    this.#daemon = daemon
    this.#unfollow = connection.onChanged((change) => {
      if (change.kind === 'resource') this.#tell({ uri: change.uri })
      else if (change.kind === 'message') this.#tell({ message: change.params })
      else if (change.kind !== 'closed') this.#tell({ list: change.kind })
    })
  }

  async listTools(_params: McpObject, call: McpCall): Promise<McpObject> {
    const connection = await this.#connection()
    const names = await this.#names()
    const tools = []
    for (const tool of connection.listTools()) {
      const own = names.get(tool.name)
      if (own !== undefined && (await this.#daemon.mayUse(own, call))) tools.push(tool)
    }
    return { tools }
  }
  async callTool({ name, arguments: args = {} }: McpObject, call: McpCall): Promise<McpObject> {
    const own = (await this.#names()).get(String(name))
    if (own !== undefined && (await this.#daemon.mayUse(own, call))) return this.#daemon.callAsAgent(own, args, call)
    throw new Refusal('invalid_request', `Unknown tool: ${String(name)}`)
  }
  async listResources(params: McpObject, { signal }: McpCall): Promise<McpObject> {
    return (await this.#connection()).listResources(params, { signal })
  }
  async listResourceTemplates(params: McpObject, { signal }: McpCall): Promise<McpObject> {
    return (await this.#connection()).listResourceTemplates(params, { signal })
  }
  async readResource(params: McpObject, { signal }: McpCall): Promise<McpObject> {
    return (await this.#connection()).readResource(params, { signal })
  }
  async listPrompts(params: McpObject, { signal }: McpCall): Promise<McpObject> {
    return (await this.#connection()).listPrompts(params, { signal })
  }
  async getPrompt(params: McpObject, { signal }: McpCall): Promise<McpObject> {
    return (await this.#connection()).getPrompt(params, { signal })
  }
  async complete(params: McpObject, { signal }: McpCall): Promise<McpObject> {
    return (await this.#connection()).complete(params, { signal })
  }
  async setLevel(params: McpObject, { signal }: McpCall): Promise<void> {
    await (await this.#connection()).setLevel(params, { signal })
  }
  async subscribe(uri: string, { signal }: McpCall): Promise<void> {
    const count = this.#followers.get(uri) ?? 0
    if (count === 0) await (await this.#connection()).subscribe({ uri }, { signal })
    this.#followers.set(uri, count + 1)
  }
  async unsubscribe(uri: string): Promise<void> {
    const count = this.#followers.get(uri) ?? 0
    if (count > 1) {
      this.#followers.set(uri, count - 1)
      return
    }
    if (this.#followers.delete(uri)) await (await this.#connection()).unsubscribe({ uri })
  }
  onChanged(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
  close(): void {
    this.#unfollow()
  }

  #connection(): Promise<McpConnection> {
    return this.#servers.client(this.#name)
  }
  /** The names that agents call its tools by, by its own. */
  async #names(): Promise<ReadonlyMap<string, string>> {
    const view = await this.#servers.find(this.#name)
    return new Map((view?.tools ?? []).filter(({ usable }) => usable).map(({ name, tool }) => [tool, name]))
  }
  #tell(changed: Parameters<Listener>[0]): void {
    for (const listener of this.#listeners) listener(changed)
  }
}
