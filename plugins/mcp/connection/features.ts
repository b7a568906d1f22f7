import type { AnyTool, Fetch } from 'svc/sdk'
import type { McpCaller, McpConnection, McpObject, McpTool } from '../contract.ts'
import type { ServerConfig } from '../servers/spec.ts'

/** Requests that a server may send while it is connected. */
export type ServerRequestMethod = 'sampling/createMessage' | 'elicitation/create' | 'roots/list'

export interface ServerRequest {
  readonly server: ServerConfig
  readonly method: ServerRequestMethod
  readonly params: McpObject
  /**
   * The calls that run on this server now, oldest first. A request over stdio does not say which of them it belongs to:
   * who needs one of them may answer only when all are of one agent.
   */
  readonly calls: readonly McpCaller[]
  /** Aborts when the server takes its request back, ends, or is stopped. */
  readonly signal: AbortSignal
}

/** A tool of the last list, and whether agents may call it. */
export interface ListedTool {
  readonly tool: McpTool
  readonly usable: boolean
  /** Why not, in words for the operator. */
  readonly reason?: string | undefined
}

/** A tool of ours for what a server offers beside its tools. `suffix` becomes `mcp_<server>_<suffix>`. */
export interface ExtraTool {
  readonly suffix: string
  readonly tool: Omit<AnyTool, 'name'>
}
export interface ExtraToolsRequest {
  readonly server: ServerConfig
  /** As at the last connection; the server need not be connected. */
  readonly capabilities: McpObject
  /** Connects if it is not connected. */
  readonly connect: (signal: AbortSignal) => Promise<McpConnection>
}

/** What the client offers to servers beside calling their tools. */
export interface ClientFeatures {
  /** The client capabilities (MCP `ClientCapabilities`) that this server is told of. */
  capabilities(server: ServerConfig): McpObject
  /** Answers a request of a server in MCP shape. A `Refusal` becomes a JSON-RPC error with its message. */
  handle(request: ServerRequest): Promise<McpObject>
  /** The `OAuthClientProvider` of the SDK for an HTTP server; `undefined`: it needs no login. */
  authProvider(server: ServerConfig, fetch: Fetch): Promise<object | undefined>
  /** Screens and pins what a server lists, each time that it lists. */
  onListed(server: ServerConfig, tools: readonly McpTool[]): Promise<readonly ListedTool[]>
  /** Tools for resources and prompts, where the server has them. */
  extraTools(request: ExtraToolsRequest): readonly ExtraTool[]
  /** The server was changed: what is stored of another address of it goes. */
  kept(server: ServerConfig): Promise<void>
  /** It was tried at this address, and is not used there: what was stored for that goes. */
  dropped(server: Pick<ServerConfig, 'name' | 'url'>): Promise<void>
  /** The server was removed: what is stored of it goes too. */
  forget(server: string): Promise<void>
}

/** Offers nothing and takes every tool. */
export const noFeatures: ClientFeatures = {
  capabilities: () => ({}),
  handle: ({ method }) => Promise.reject(new Error(`${method} is not offered`)),
  authProvider: () => Promise.resolve(undefined),
  onListed: (_server, tools) => Promise.resolve(tools.map((tool) => ({ tool, usable: true }))),
  extraTools: () => [],
  kept: () => Promise.resolve(),
  dropped: () => Promise.resolve(),
  forget: () => Promise.resolve(),
}
