import type { Principal, ToolCallContext } from 'svc/sdk'
import type { McpObject, McpRequester } from '../contract.ts'
import type { McpChanged } from '../exports.ts'

/** Who sent a request to `/mcp`. */
export interface McpCaller {
  readonly principal: Principal
  /** `X-Svc-Agent-Id`. */
  readonly agent: string | undefined
  /** Of a client with a session. */
  readonly sessionId: string | undefined
}
/** One request, with the ways back to the client. */
export interface McpCall extends McpCaller {
  readonly signal: AbortSignal
  readonly progress: ToolCallContext['progress']
  readonly client: ToolCallContext['client']
  /** The client is a daemon of svc that uses this one as an MCP server. */
  readonly isDaemon: boolean
  /** Daemons that the request came through. */
  readonly hops: number
}
export type { McpRequester }

/** What a server of MCP answers with: the daemon, or an MCP server behind it. Params and results in MCP shapes. */
export interface McpBackend {
  readonly info: { readonly name: string; readonly version: string; readonly title?: string }
  readonly instructions: string | undefined
  readonly capabilities: McpObject
  listTools(params: McpObject, call: McpCall): Promise<McpObject>
  callTool(params: McpObject, call: McpCall): Promise<McpObject>
  listResources(params: McpObject, call: McpCall): Promise<McpObject>
  listResourceTemplates(params: McpObject, call: McpCall): Promise<McpObject>
  readResource(params: McpObject, call: McpCall): Promise<McpObject>
  listPrompts(params: McpObject, call: McpCall): Promise<McpObject>
  getPrompt(params: McpObject, call: McpCall): Promise<McpObject>
  complete(params: McpObject, call: McpCall): Promise<McpObject>
  /** The first follower of a resource; throws when there is no such resource. */
  subscribe(uri: string, call: McpCall): Promise<void>
  /** The last follower is gone. */
  unsubscribe(uri: string): Promise<void>
  /** Until the returned function is called. */
  onChanged(listener: (changed: McpChanged | { readonly message: McpObject }) => void): () => void
  /** The client wants messages from this level on; for servers behind the daemon. `owner` stands for the client. */
  setLevel?(owner: object, level: string): Promise<void>
  /** The client has left. */
  dropLevel?(owner: object): Promise<void>
}
