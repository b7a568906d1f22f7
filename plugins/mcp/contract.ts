import { defineService, notify } from 'svc/sdk'
import type { Dispose, ToolClient, ToolProgress } from 'svc/sdk'
import type { DecideRights, McpServerAddition, McpTransport } from './added/contract.ts'

export type * from './added/contract.ts'

/** The name in `clientInfo` by which a daemon knows that its client is another one. */
export const DAEMON_CLIENT = 'svc'
/** The key in `_meta` of a request: the number of daemons that it came through. */
export const HOP_COUNT = 'svc/hops'

/** A params or result object in the shape that the MCP specification gives it. */
export type McpObject = Readonly<Record<string, unknown>>

/**
 * - `disconnected`: it is not running, and starts with the first use.
 * - `error`: it failed, and its restarts are used up or it waits for the next one; `error` in the view says why.
 * - `login_required`: the server wants a login: `svc mcp login`.
 */
export type McpServerState = 'connected' | 'connecting' | 'disconnected' | 'error' | 'login_required' | 'disabled'

/** A tool as a server lists it (MCP `Tool`). */
export interface McpTool {
  readonly name: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly inputSchema: McpObject
  readonly outputSchema?: McpObject | undefined
  readonly annotations?: McpObject | undefined
  readonly _meta?: McpObject | undefined
}
export interface McpToolView {
  /** As agents call it, `mcp_<server>_<tool>`. */
  readonly name: string
  /** As the server calls it. */
  readonly tool: string
  readonly description: string
  readonly risk: 'read' | 'write' | 'execute'
  /** Whether agents may call it. */
  readonly usable: boolean
  /** Why not. */
  readonly reason: string | null
  readonly input_schema: McpObject
}

/** Without values of headers and variables. */
export interface McpServerView {
  readonly name: string
  readonly transport: McpTransport
  readonly command: string | null
  readonly args: readonly string[]
  readonly url: string | null
  /** Names only. */
  readonly headers: readonly string[]
  readonly env: readonly string[]
  readonly network: readonly string[]
  readonly timeout_secs: number
  readonly lazy: boolean
  readonly enabled: boolean
  /** `file`: `[[mcp_servers]]`, which the API cannot change. `api`, or what added it. */
  readonly origin: string
  readonly trust: 'operator' | 'confined'
  readonly state: McpServerState
  readonly connected: boolean
  readonly error: string | null
  /** As the server says; empty before the first connection. */
  readonly server_info: McpObject | null
  readonly protocol_version: string | null
  readonly instructions: string | null
  readonly pid: number | null
  readonly restarts: number
  readonly calls: number
  readonly failed_calls: number
  /** ISO 8601 UTC. */
  readonly connected_since: string | null
  readonly last_used: string | null
  readonly tools: readonly McpToolView[]
}

/** The call of a tool of the daemon that a request to a server belongs to. */
export interface McpCaller {
  readonly agentId: string
  readonly agentName: string
  readonly sessionId: string
  readonly turnId: string
  readonly callId: string
  readonly signal: AbortSignal
  /** The program at the other end, where it can be asked. */
  readonly client?: ToolClient | undefined
  readonly waiting?: ((detail: string) => () => void) | undefined
}
export interface McpRequestOptions {
  readonly signal?: AbortSignal | undefined
  /** Default: `timeout_secs` of the server. */
  readonly timeoutMs?: number | undefined
  readonly progress?: ((progress: ToolProgress) => void) | undefined
  /** Absent: nobody can be asked during this request. */
  readonly caller?: McpCaller | undefined
}

export type McpChange =
  | { readonly kind: 'tools' | 'prompts' | 'resources' }
  | { readonly kind: 'resource'; readonly uri: string }
  | { readonly kind: 'message'; readonly params: McpObject }
  | { readonly kind: 'closed'; readonly reason: string }

/**
 * A connected server. Params and results have the shapes of MCP. A request rejects with `UpstreamFailure` when the
 * server fails, ends or takes too long, with an `McpRequestError` for an error that the server answered, and with the
 * reason of its signal.
 */
export interface McpConnection {
  readonly server: string
  readonly capabilities: McpObject
  readonly serverInfo: McpObject
  readonly instructions: string | undefined
  readonly protocolVersion: string
  /** The tools of the last list, those that are not usable by agents left out. */
  listTools(): readonly McpTool[]
  callTool(params: McpObject, options?: McpRequestOptions): Promise<McpObject>
  listResources(params?: McpObject, options?: McpRequestOptions): Promise<McpObject>
  listResourceTemplates(params?: McpObject, options?: McpRequestOptions): Promise<McpObject>
  readResource(params: McpObject, options?: McpRequestOptions): Promise<McpObject>
  listPrompts(params?: McpObject, options?: McpRequestOptions): Promise<McpObject>
  getPrompt(params: McpObject, options?: McpRequestOptions): Promise<McpObject>
  complete(params: McpObject, options?: McpRequestOptions): Promise<McpObject>
  subscribe(params: McpObject, options?: McpRequestOptions): Promise<McpObject>
  unsubscribe(params: McpObject, options?: McpRequestOptions): Promise<McpObject>
  setLevel(params: McpObject, options?: McpRequestOptions): Promise<McpObject>
  /** Settles when the server has answered. */
  ping(options?: McpRequestOptions): Promise<void>
  /** Until it is disposed. Keeps no idle server running. */
  onChanged(listener: (change: McpChange) => void): Dispose
}

/** The JSON-RPC error that a server answered, for whoever passes it on. */
export class McpRequestError extends Error {
  override readonly name = 'McpRequestError'
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** Tools for resources and prompts. */
export type McpFeatureTool = 'list_resources' | 'read_resource' | 'list_prompts' | 'get_prompt'
export interface McpServers {
  list(): Promise<readonly McpServerView[]>
  /** `undefined` when there is none of this name. */
  find(name: string): Promise<McpServerView | undefined>
  /**
   * Settles when it was connected and its tools were listed, or throws why not and leaves nothing: `invalid_request`,
   * `conflict` when the name is taken, `forbidden`, or what the server did wrong. A server that wants a login stays, in
   * the state `login_required`.
   */
  add(spec: McpServerAddition): Promise<McpServerView>
  /** Replaces the spec of a server that was added while running. Throws as `add`, and leaves the old one as it was. */
  update(name: string, spec: McpServerAddition): Promise<McpServerView>
  /** Ends it with its process tree; calls that run are told. Throws `not_found`, and `conflict` for one of the file. */
  remove(name: string): Promise<void>
  /** Ends it and connects again, also after it was given up. */
  reconnect(name: string): Promise<McpServerView>
  /** `decide` is asked about programs whose origin begins with `kind:`. */
  decideRights(kind: string, decide: DecideRights): Dispose
  /** Connects, lists the tools and leaves nothing behind. */
  test(spec: McpServerAddition): Promise<{
    readonly serverInfo: McpObject
    readonly protocolVersion: string
    readonly tools: readonly McpTool[]
  }>
  /** The name that agents call a tool of this kind by; `undefined` while the server has none. */
  featureTool(name: string, feature: McpFeatureTool): Promise<string | undefined>
  /** Starts it if it does not run. Throws `not_found`, and what the server does wrong. */
  client(name: string): Promise<McpConnection>
}
export const McpServers = defineService<McpServers>()('mcp-servers')

/** A server was added or removed, or its state or its tools changed. `tools`: how many of them agents can use. */
export const McpServerChanged = notify<{
  readonly name: string
  readonly state: McpServerState | 'removed'
  readonly tools: number
}>('mcp:server-changed')
