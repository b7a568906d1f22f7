import type * as v from 'valibot'

/** Who runs a tool and for what. */
export interface ToolCallContext {
  /** The agent that called, by id. */
  readonly agentId: string
  /** The name of that caller. */
  readonly agentName: string
  /** What the turn belongs to, by id. */
  readonly sessionId: string
  /** The turn that made the call, by id. */
  readonly turnId: string
  /** What the arguments may come from, such as `ExternalNetwork`; whoever hands them on hands this on as well. */
  readonly labels?: readonly string[]
  /** The same on every retry of this call: an idempotency key for effects outside. */
  readonly callId: string
  /** Aborts when the turn is stopped, the tool's time is up or its plugin unloads. */
  readonly signal: AbortSignal
}

/** What a call means to the person who is asked about it. */
export interface CallAssessment {
  /** Goes on after "wants to", such as "run a program". */
  readonly intent: string
  /** How much harm exactly this call can do; what its tool can do when absent. */
  readonly harm?: 'low' | 'medium' | 'high' | 'critical'
  /**
   * The further calls that one answer may stand for: those of the same tool with the same key. `covers` says which
   * these are.
   * `once`: every call has to be asked about by itself. Calls with the very same arguments when absent.
   */
  readonly standing?: 'once' | { readonly key: string; readonly covers: string }
}

/** A tool an agent can call. Its input schema is the JSON Schema the model sees and the parser of the call. */
export interface Tool<I extends v.GenericSchema = v.GenericSchema> {
  /** snake_case, unique in the daemon. */
  readonly name: string
  /** What it does and when to use it. */
  readonly description: string
  /** The schema of the arguments: a valibot object. */
  readonly input: I
  /** What can go wrong: nothing is changed, something of ours is changed, or something outside is. */
  readonly risk: 'read' | 'write' | 'execute'
  /** Polling is expected of it, so the loop guard is more patient. */
  readonly polls?: boolean
  /** Seconds before it is aborted; the registry's default when absent. */
  readonly timeoutSecs?: number
  /** What its answer is labelled with beside what the arguments carry, such as `ExternalNetwork` for a fetched page. */
  readonly labels?: readonly string[]
  /**
   * Labels its arguments must not carry, such as `ExternalNetwork` for a command. Whoever calls it for a model checks
   * this.
   */
  readonly refuses?: readonly string[]
  /**
   * The capability without which every call would be refused, such as `shell`: it is not offered to an agent that has
   * none of it.
   */
  readonly needs?: string
  /** What a call means to a person. From the arguments alone: nothing is looked up or done for it. */
  assess?(input: v.InferOutput<I>): CallAssessment
  /** The text the model gets. A thrown `Refusal` is told to the model; anything else becomes a plain "failed". */
  run(input: v.InferOutput<I>, call: ToolCallContext): Promise<string>
}
/** A tool whatever its input is. */
export type AnyTool = Tool

/** What the model is told of a tool. */
export interface ToolDescription {
  /** Its name, unique in the daemon. */
  readonly name: string
  /** What it does and when to use it. */
  readonly description: string
  /** The JSON Schema of its arguments. */
  readonly input: object
  /** What can go wrong, as the tool declares it. */
  readonly risk: Tool['risk']
  /** Polling is expected of it. */
  readonly polls?: boolean
  /** What its answer is labelled with, and what its arguments must not carry. */
  readonly labels?: readonly string[]
  /** Labels its arguments must not carry. */
  readonly refuses?: readonly string[]
  /** The capability without which it is of no use to an agent. */
  readonly needs?: string | undefined
  /** `undefined` when the tool says nothing of its calls, and for arguments it would refuse. */
  readonly assess?: (args: unknown) => CallAssessment | undefined
}
/** `refused` names the label for which a call was not made although its arguments were sound. */
export interface ToolResult {
  /** The answer, or what went wrong. */
  readonly text: string
  /** Whether the call failed or was refused. */
  readonly failed: boolean
  /** Whether the text was cut at the largest size of an answer. */
  readonly truncated: boolean
  /** How long the call took, in milliseconds. */
  readonly durationMs: number
  /** The label for which the call was refused; absent otherwise. */
  readonly refused?: string
}

/** Adds tools until the plugin unloads, and calls those of every plugin. */
export interface Tools {
  /** Throws when a name is taken. */
  add(...tools: readonly AnyTool[]): void
  /** Every tool of every loaded plugin, by name. */
  list(): readonly ToolDescription[]
  /** The tool of this name, or `undefined` when no loaded plugin has it. */
  find(name: string): ToolDescription | undefined
  /**
   * Parses the arguments, runs the tool and caps its time and its output. Never rejects for what the tool or the
   * arguments do wrong: that is a result with `failed`, told to the model. Rejects only when `call.signal` aborts.
   */
  call(name: string, args: unknown, call: ToolCallContext): Promise<ToolResult>
  /**
   * From now on tools that send data away refuse arguments with this value or a part of it. Values under eight
   * characters are ignored.
   */
  protectSecret(value: string): void
  /** Whether arguments hold a secret of the daemon, in plain or in a usual encoding. */
  containsSecret(args: unknown): boolean
}

/** The tool as it is, checked by the compiler. */
export function defineTool<I extends v.GenericSchema>(tool: Tool<I>): Tool<I> {
  return tool
}
