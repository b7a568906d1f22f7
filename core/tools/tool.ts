import type * as v from 'valibot'
import type { Effect } from '../auth/authority.ts'
import { stableId } from '../schema/stable-id.ts'

/** A part of an answer, in the shapes of MCP. `data` and `blob` are base64. */
export type ToolContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | {
      readonly type: 'resource'
      readonly resource: {
        readonly uri: string
        readonly mimeType?: string
        readonly text?: string
        readonly blob?: string
      }
    }
  | {
      readonly type: 'resource_link'
      readonly uri: string
      readonly name: string
      readonly title?: string
      readonly description?: string
      readonly mimeType?: string
    }
/** An answer that is more than text. */
export interface ToolAnswer {
  /** All that a caller gets who can read text only. */
  readonly text: string
  /** The call failed, and `text` says why. */
  readonly failed?: boolean
  /** All parts of the answer, for callers that can show more than text. */
  readonly content?: readonly ToolContent[]
  /** The answer as data, in the shape of `outputSchema`. */
  readonly structured?: Readonly<Record<string, unknown>>
}
/** How far a call is. */
export interface ToolProgress {
  /** Grows from message to message. */
  readonly progress: number
  /** What `progress` grows to, where that is known. */
  readonly total?: number
  /** What is done now, in a few words. */
  readonly message?: string
}
/** The program at the other end of a call, which can be asked while the call runs. Methods and shapes of MCP. */
export interface ToolClient {
  /** What it can do: its capabilities as it declared them. */
  readonly abilities: Readonly<Record<string, unknown>>
  /** Asks it, such as `elicitation/create`. Rejects with its error, or the reason of the signal. */
  request(method: string, params: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<unknown>
  /** Tells it something, such as `notifications/message`. */
  notify(method: string, params: Readonly<Record<string, unknown>>): void
}

/** Who runs a tool and for what. */
export interface ToolCallContext {
  /** The agent that called, by id. */
  readonly agentId: string
  /** The name of that caller. */
  readonly agentName: string
  /** The id of the conversation of the turn. */
  readonly sessionId: string
  /** The turn that made the call, by id. */
  readonly turnId: string
  /**
   * Labels of the sources of the arguments, such as `ExternalNetwork`. Pass them on with what is derived from the
   * arguments.
   */
  readonly labels?: readonly string[]
  /** Callers, by id, that asked for the turn, the first one first. What the call leaves behind is for them too. */
  readonly onBehalf?: readonly string[]
  /** Daemons that the message of the turn came through. */
  readonly hops?: number
  /** Who speaks in the turn, as `TurnRequest.user` has it; absent where it is the owner of the daemon. */
  readonly user?: string
  /** The same on every retry of this call: an idempotency key for external effects. */
  readonly callId: string
  /** Aborts when the turn is stopped, the tool's time is up or its plugin unloads. */
  readonly signal: AbortSignal
  /** Tells whoever waits for the call how far it is; absent when nobody listens. Never throws. */
  readonly progress?: (progress: ToolProgress) => void
  /** Says that the call waits for a person, until the function that it returns is called. Never throws. */
  readonly waiting?: (detail: string) => () => void
  /** Absent for callers that cannot be asked. */
  readonly client?: ToolClient
}

/**
 * The idempotency key of a call: a UUID that is the same when the call is made again after a crash, and another one for
 * every other call. Send it to whatever the call changes outside the daemon.
 */
export function idempotencyKey({ turnId, callId }: Pick<ToolCallContext, 'turnId' | 'callId'>): string {
  return stableId('tool', turnId, callId)
}

/**
 * What is known of a call that was cut off by the end of the process. `done`: it had its effect, and `text` is its
 * result. `repeat`: it had none, or making it again with the same key does no harm. `unknown`: it may have had its
 * effect; `text` says what to check.
 */
export type Recovery =
  | { readonly outcome: 'done'; readonly text: string }
  | { readonly outcome: 'repeat' }
  | { readonly outcome: 'unknown'; readonly text: string }

/** Describes a call to the person who approves it. */
export interface CallAssessment {
  /** Continues "wants to", such as "run a program". */
  readonly intent: string
  /** How much harm this call can do. Default: by the risk of its tool. */
  readonly harm?: 'low' | 'medium' | 'high' | 'critical'
  /**
   * The further calls that one answer covers: calls of the same tool with the same key, described by `covers`. `once`:
   * every call needs its own answer. Default: calls with equal arguments.
   */
  readonly standing?: 'once' | { readonly key: string; readonly covers: string }
}

/** A tool an agent can call. Its input schema is the JSON Schema the model sees and the parser of the call. */
export interface Tool<I extends v.GenericSchema = v.GenericSchema> {
  /** snake_case, unique in the daemon. */
  readonly name: string
  /** The name for people; `name` when absent. */
  readonly title?: string
  /** What it does and when to use it. */
  readonly description: string
  /** The schema of the arguments: a valibot object. */
  readonly input: I
  /** The JSON Schema of `structured` in its answers. */
  readonly outputSchema?: object
  /** What a call can change: nothing, data of the daemon, or something outside. */
  readonly risk: 'read' | 'write' | 'execute'
  /**
   * What a call leaves behind, as routes declare it: whoever approves a call must be able to cause that effect
   * themselves. Default: `conversation`, which every credential may cause.
   */
  readonly effect?: Effect
  /** The tool is meant for polling, so the loop guard allows more calls. */
  readonly polls?: boolean
  /** Seconds until a call is aborted; the default of the registry when absent. */
  readonly timeoutSecs?: number
  /** Labels of its result in addition to those of the arguments, such as `ExternalNetwork` for a fetched page. */
  readonly labels?: readonly string[]
  /** Labels its arguments must not have, such as `ExternalNetwork` for a command. The caller checks this. */
  readonly refuses?: readonly string[]
  /** The capability that every call needs, such as `shell`: the tool is hidden from callers that do not have it. */
  readonly needs?: string
  /** Reports to those who asked for the turn, such as its result: they need no right of their own to it. */
  readonly reports?: boolean
  /** Describes a call to a person, from the arguments alone: it must not look up or change anything. */
  assess?(input: v.InferOutput<I>): CallAssessment
  /**
   * The text the model gets, or an answer with more than that. A thrown `Refusal` is told to the model; anything else
   * becomes a plain "failed".
   */
  run(input: v.InferOutput<I>, call: ToolCallContext): Promise<string | ToolAnswer>
  /**
   * Finds out what became of a call that was cut off; `call` is the same as it was. Changes nothing. Default: a tool
   * that only reads is called again, and of every other call the outcome is unknown.
   */
  recover?(input: v.InferOutput<I>, call: ToolCallContext): Promise<Recovery>
}
/** A tool with any input. */
export type AnyTool = Tool

/** What the model is told of a tool. */
export interface ToolDescription {
  /** Its name, unique in the daemon. */
  readonly name: string
  /** The name for people. */
  readonly title?: string | undefined
  /** What it does and when to use it. */
  readonly description: string
  /** The JSON Schema of its arguments. */
  readonly input: object
  /** The JSON Schema of `structured` in its answers. */
  readonly outputSchema?: object | undefined
  /** Where its plugin has it from, as given to `Tools.set`, such as `mcp:github`. */
  readonly source?: string | undefined
  /** What can go wrong, as the tool declares it. */
  readonly risk: Tool['risk']
  /** What a call leaves behind, as the tool declares it. */
  readonly effect?: Effect
  /** The tool is meant for polling. */
  readonly polls?: boolean
  /** Labels of its result. */
  readonly labels?: readonly string[]
  /** Labels its arguments must not have. */
  readonly refuses?: readonly string[]
  /** The capability without which it is of no use to an agent. */
  readonly needs?: string | undefined
  /** It reports to those who asked for the turn, who need no right of their own to it. */
  readonly reports?: boolean
  /** `undefined` if the tool does not describe its calls, and for invalid arguments. */
  readonly assess?: (args: unknown) => CallAssessment | undefined
}
/** The result of a call. `refused` names the label because of which a call with valid arguments was refused. */
export interface ToolResult {
  /** The result, or the error message. */
  readonly text: string
  /** All parts of the answer of a tool that gave more than text. */
  readonly content?: readonly ToolContent[]
  /** The answer as data. */
  readonly structured?: Readonly<Record<string, unknown>>
  /** Whether the call failed or was refused. */
  readonly failed: boolean
  /** Whether the text was cut at the maximum size of a result. */
  readonly truncated: boolean
  /** How long the call took, in milliseconds. */
  readonly durationMs: number
  /** The label because of which the call was refused; absent otherwise. */
  readonly refused?: string
}

/** Adds tools until the plugin unloads, and calls those of every plugin. */
export interface Tools {
  /** Throws if a name is already in use. */
  add(...tools: readonly AnyTool[]): void
  /**
   * The tools that the plugin has from one source, such as `mcp:github`, instead of those it had from it before; none
   * of them are left with an empty list. Throws if a name is already in use, and
   * changes nothing then.
   */
  set(source: string, tools: readonly AnyTool[]): void
  /** Every tool of every loaded plugin, by name. */
  list(): readonly ToolDescription[]
  /** The tool of this name, or `undefined` if no loaded plugin has it. */
  find(name: string): ToolDescription | undefined
  /**
   * Parses the arguments, runs the tool and caps its time and its output. Never rejects for what the tool or the
   * arguments do wrong: that is a result with `failed`, told to the model. Rejects only when `call.signal` aborts.
   */
  call(name: string, args: unknown, call: ToolCallContext): Promise<ToolResult>
  /**
   * What is known of a call that an earlier process did not finish. Rejects only when `call.signal` aborts: a tool that
   * is gone or fails leaves the outcome unknown.
   */
  recover(name: string, args: unknown, call: ToolCallContext): Promise<Recovery>
  /**
   * From now on tools that send data to other systems refuse arguments that contain this value or a part of it. Values
   * under eight characters are ignored.
   */
  protectSecret(value: string): void
  /** Whether arguments contain a secret of the daemon, in plain text or in a common encoding. */
  containsSecret(args: unknown): boolean
}

/** Returns the tool; the compiler checks it. */
export function defineTool<I extends v.GenericSchema>(tool: Tool<I>): Tool<I> {
  return tool
}
