import { isObject, Refusal } from 'svc/sdk'
import type { McpConnection, McpFeatureTool, McpServers } from '../../mcp/contract.ts'
import type { McpObject } from '../contract.ts'
import type { McpChanged } from '../exports.ts'
import type { McpBackend, McpCall } from './backend.ts'
import type { DaemonBackend } from './daemon.ts'
import { toPrompt, toResource } from './gateway-results.ts'
import { mostVerbose } from './log-levels.ts'

type Listener = (changed: McpChanged | { readonly message: McpObject }) => void

/**
 * One MCP server of the daemon under its own names. Its tools are called as the acting agent calls them; its resources
 * and prompts are read with the tools that agents read them with.
 */
export class GatewayBackend implements McpBackend {
  readonly info: McpBackend['info']
  readonly instructions: string | undefined
  readonly capabilities: McpObject
  readonly #name: string
  /** Those of now: their plugin may be replaced while clients are here. */
  readonly #servers: () => McpServers
  readonly #daemon: DaemonBackend
  readonly #listeners = new Set<Listener>()
  /** Followers by resource. */
  readonly #followers = new Map<string, number>()
  /** The least level of messages that each client wants. */
  readonly #levels = new Map<object, string>()
  readonly #running = new Set<McpCall>()
  #current: McpConnection
  #isClosed = false
  /** Settles when the current connection knows what clients follow. */
  #told: Promise<void> = Promise.resolve()
  #unfollow: () => unknown

  constructor(connection: McpConnection, servers: () => McpServers, daemon: DaemonBackend) {
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
    this.#current = connection
    this.#unfollow = this.#follow(connection)
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
    if (own === undefined || !(await this.#daemon.mayUse(own, call)))
      throw new Refusal('invalid_request', `Unknown tool: ${String(name)}`)
    return this.#call(own, args, call)
  }
  async listResources(params: McpObject, call: McpCall): Promise<McpObject> {
    return (await this.#connectionFor('list_resources', call)).listResources(params, { signal: call.signal })
  }
  async listResourceTemplates(params: McpObject, call: McpCall): Promise<McpObject> {
    return (await this.#connectionFor('list_resources', call)).listResourceTemplates(params, { signal: call.signal })
  }
  async readResource({ uri }: McpObject, call: McpCall): Promise<McpObject> {
    return toResource(String(uri), await this.#call(await this.#featureTool('read_resource', call), { uri }, call))
  }
  async listPrompts(params: McpObject, call: McpCall): Promise<McpObject> {
    return (await this.#connectionFor('list_prompts', call)).listPrompts(params, { signal: call.signal })
  }
  async getPrompt({ name, arguments: args = {} }: McpObject, call: McpCall): Promise<McpObject> {
    const tool = await this.#featureTool('get_prompt', call)
    return toPrompt(await this.#call(tool, { name, arguments: args }, call))
  }
  async complete(params: McpObject, call: McpCall): Promise<McpObject> {
    const isPrompt = isObject(params['ref']) && params['ref']['type'] === 'ref/prompt'
    const connection = await this.#connectionFor(isPrompt ? 'get_prompt' : 'read_resource', call)
    return connection.complete(params, { signal: call.signal })
  }
  /** All clients share the program: it tells as much as the one that wants most. */
  async setLevel(owner: object, level: string): Promise<void> {
    this.#levels.set(owner, level)
    await this.#sendLevel(await this.#connection())
  }
  async dropLevel(owner: object): Promise<void> {
    if (this.#levels.delete(owner) && !this.#isClosed) await this.#sendLevel(this.#current)
  }
  async subscribe(uri: string, call: McpCall): Promise<void> {
    const connection = await this.#connectionFor('read_resource', call)
    const count = this.#followers.get(uri) ?? 0
    if (count === 0) await connection.subscribe({ uri }, { signal: call.signal })
    this.#followers.set(uri, count + 1)
  }
  async unsubscribe(uri: string): Promise<void> {
    const count = this.#followers.get(uri) ?? 0
    if (count > 1) {
      this.#followers.set(uri, count - 1)
      return
    }
    if (this.#followers.delete(uri) && !this.#isClosed) await this.#current.unsubscribe({ uri })
  }
  onChanged(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
  /** The server was connected anew: it is told again what clients follow. */
  async reconnected(): Promise<void> {
    if (this.#followers.size > 0 || this.#levels.size > 0) await this.#connection()
  }
  close(): void {
    this.#unfollow()
  }

  async #call(tool: string, args: unknown, call: McpCall): Promise<McpObject> {
    // Its messages are heard also when the program was started anew.
    await this.#connection()
    this.#running.add(call)
    try {
      return await this.#daemon.callAsAgent(tool, args, call)
    } finally {
      this.#running.delete(call)
    }
  }
  /** What agents do this with. Throws unless the acting agent may use it. */
  async #featureTool(feature: McpFeatureTool, call: McpCall): Promise<string> {
    const tool = await this.#servers().featureTool(this.#name, feature)
    if (tool === undefined)
      throw new Refusal('invalid_request', `The MCP server "${this.#name}" has no tool ${feature} for agents`)
    await this.#daemon.requireTool(tool, call)
    return tool
  }
  /** For what is no call of a tool, but shows what one would: the agent may use that tool, and it is written down. */
  async #connectionFor(feature: McpFeatureTool, call: McpCall): Promise<McpConnection> {
    const tool = await this.#featureTool(feature, call)
    const connection = await this.#connection()
    await this.#daemon.record(`a client of MCP asked the MCP server "${this.#name}", as with ${tool}`, call)
    return connection
  }
  async #connection(): Promise<McpConnection> {
    const connection = await this.#servers().client(this.#name)
    if (connection !== this.#current) {
      this.#unfollow()
      this.#current = connection
      this.#unfollow = this.#follow(connection)
      const told = this.#tellAgain(connection)
      this.#told = told
      // Whoever waits hears of its failure; later requests do not depend on it.
      told.catch(() => {
        if (this.#told === told) this.#told = Promise.resolve()
      })
    }
    await this.#told
    return connection
  }
  async #tellAgain(connection: McpConnection): Promise<void> {
    await this.#sendLevel(connection)
    await Promise.all([...this.#followers.keys()].map((uri) => connection.subscribe({ uri })))
  }
  #follow(connection: McpConnection): () => unknown {
    this.#isClosed = false
    return connection.onChanged((change) => {
      if (change.kind === 'closed') this.#isClosed = true
      else if (change.kind === 'resource') this.#tell({ uri: change.uri })
      else if (change.kind === 'message') this.#said(change.params)
      else this.#tell({ list: change.kind })
    })
  }
  async #sendLevel(connection: McpConnection): Promise<void> {
    const level = mostVerbose(this.#levels.values())
    if (level !== undefined) await connection.setLevel({ level })
  }
  /**
   * A program does not say to which call a message belongs. It is that of the client whose calls run; while those of
   * several run, nobody is told what may be another's.
   */
  #said(message: McpObject): void {
    const calls = [...this.#running]
    const [call] = calls
    if (!call) this.#tell({ message })
    else if (
      calls.every(({ sessionId }) => sessionId !== undefined && sessionId === call.sessionId) ||
      calls.length === 1
    )
      call.client?.notify('notifications/message', message)
  }
  /** The names that agents call its tools by, by its own. */
  async #names(): Promise<ReadonlyMap<string, string>> {
    const view = await this.#servers().find(this.#name)
    return new Map((view?.tools ?? []).filter(({ usable }) => usable).map(({ name, tool }) => [tool, name]))
  }
  #tell(changed: Parameters<Listener>[0]): void {
    for (const listener of this.#listeners) listener(changed)
  }
}
