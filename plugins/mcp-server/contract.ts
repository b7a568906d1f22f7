import { defineService } from 'svc/sdk'
import type { Dispose, Principal } from 'svc/sdk'

/** A params or result object in the shape that the MCP specification gives it. */
export type McpObject = Readonly<Record<string, unknown>>

/** Who asks for something that `/mcp` exports. */
export interface McpRequester {
  /** The agent whose tools the client sees. */
  readonly agentId: string
  readonly principal: Principal
  /** Aborts when the client no longer wants the answer. */
  readonly signal: AbortSignal
}

/** MCP `Resource`. */
export interface McpResource {
  readonly uri: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  readonly size?: number
}
/** MCP `ResourceTemplate`: `uriTemplate` is one of RFC 6570. */
export interface McpResourceTemplate {
  readonly uriTemplate: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
}
/** MCP `TextResourceContents` or `BlobResourceContents`. */
export type McpContents =
  | { readonly uri: string; readonly mimeType?: string; readonly text: string }
  | { readonly uri: string; readonly mimeType?: string; readonly blob: string }

/** What is completed: the argument of a template or prompt, and the arguments that are known. */
export interface McpCompletion {
  readonly argument: { readonly name: string; readonly value: string }
  readonly known: Readonly<Record<string, string>>
}

/** Resources of a plugin. What it throws as a `Refusal` is shown to the client. */
export interface McpResourceProvider {
  list?(requester: McpRequester): Promise<readonly McpResource[]> | readonly McpResource[]
  readonly templates?: readonly McpResourceTemplate[]
  /** `undefined` when the URI is not one of its own. */
  read(uri: string, requester: McpRequester): Promise<readonly McpContents[] | undefined>
  /** Values of an argument of one of its templates. */
  complete?(
    uriTemplate: string,
    completion: McpCompletion,
    requester: McpRequester,
  ): Promise<readonly string[]> | readonly string[]
}

/** MCP `Prompt`. */
export interface McpPrompt {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly arguments?: readonly {
    readonly name: string
    readonly description?: string
    readonly required?: boolean
  }[]
}
/** Prompts of a plugin. What it throws as a `Refusal` is shown to the client. */
export interface McpPromptProvider {
  list(requester: McpRequester): Promise<readonly McpPrompt[]> | readonly McpPrompt[]
  /** MCP `GetPromptResult`; called with a name that `list` has, and with all its required arguments. */
  get(name: string, args: Readonly<Record<string, string>>, requester: McpRequester): Promise<McpObject>
  complete?(
    name: string,
    completion: McpCompletion,
    requester: McpRequester,
  ): Promise<readonly string[]> | readonly string[]
}

/** What `/mcp` offers beside tools: plugins add resources and prompts. */
export interface McpExports {
  /** Until it is disposed. */
  resources(provider: McpResourceProvider): Dispose
  /** Until it is disposed. */
  prompts(provider: McpPromptProvider): Dispose
  /** Clients that subscribed to the resource are told that it is another one now. */
  updated(uri: string): void
  /** Clients are told that the list has changed. */
  listChanged(list: 'tools' | 'resources' | 'prompts'): void
}
export const McpExports = defineService<McpExports>()('mcp-exports')
