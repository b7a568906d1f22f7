import { defineError, defineService, gate, notify, transform } from 'svc/sdk'
import type { Dispose, Effect, Principal, Statement, ToolCallContext, ToolResult } from 'svc/sdk'
import type { CompletionRequest, ResponseFormat, Usage } from 'svc/providers'
import type { Agent } from '../agents/contract.ts'
import type { EntryPoint, TurnFailure, TurnState } from '../journal/contract.ts'
import type { ResolvedModel } from '../providers/contract.ts'
import type { Label, Message, SentImage, Session } from '../sessions/contract.ts'

export type TurnEvent =
  | { readonly type: 'thinking' }
  | { readonly type: 'text'; readonly delta: string }
  /** What the model thinks, where it says so and the agent shows it. */
  | { readonly type: 'reasoning'; readonly delta: string }
  | ({ readonly type: 'phase' } & TurnPhase)
  | { readonly type: 'tool-started'; readonly tool: string; readonly callId: string }
  | {
      readonly type: 'tool-ended'
      readonly tool: string
      readonly callId: string
      readonly input: unknown
      readonly output: string
      readonly failed: boolean
    }
  | { readonly type: 'end'; readonly result: TurnResult }

/**
 * What a turn waits for or does. `waiting_for_model` and `streaming` are the normal case: events report them only after
 * another phase, so that the last reported phase is always the current one.
 */
export interface TurnPhase {
  readonly phase:
    | 'queued'
    | 'waiting_for_model'
    | 'streaming'
    | 'retrying'
    | 'circuit_open'
    | 'switching_model'
    | 'compacting'
    | 'running_tools'
    | 'waiting_for_approval'
  /** In words for a person. */
  readonly detail: string
  /** When the model is called again, ISO 8601 UTC. */
  readonly retryAt?: string
  /** Number of the call that comes next; the first one is 1. */
  readonly attempt?: number
  /** How far a tool is, of what. */
  readonly progress?: number
  readonly total?: number
}

/** How full the model's window is: under 50 %, to 70, to 85, above. */
export type ContextPressure = 'low' | 'medium' | 'high' | 'critical'

export interface TurnResult {
  readonly turnId: string
  readonly sessionId: string
  readonly text: string
  /** What the models thought, where they said so and the agent shows it; cut at `plugins.chat.reasoning_chars`. */
  readonly reasoning?: string
  readonly usage: Usage
  /** Calls of the model. */
  readonly iterations: number
  /** `null` when the price of a model that was used is not known. */
  readonly costUsd: number | null
  readonly provider: string
  readonly model: string
  readonly stop: 'done' | 'length' | 'refused' | 'cancelled' | 'iterations'
  /** After the last call of the model; absent when none ended. */
  readonly contextPressure?: ContextPressure
}

/**
 * Asked for the answer of a turn that has none and never will: the same request again changes nothing, so it is not
 * `service_unavailable`.
 */
export const TurnInterrupted = defineError('turn_failed', {
  status: 409,
  format: 'coded',
  meaning: 'the turn ended without an answer',
})
export interface TurnRequest {
  /** The id of the turn, when the caller has one that is the same on every retry; it must not have been used. */
  readonly id?: string
  readonly agentId: string
  /** The agent's active session when absent. */
  readonly sessionId?: string
  readonly text: string
  readonly images?: readonly SentImage[]
  readonly entryPoint: EntryPoint
  readonly temperature?: number
  readonly maxTokens?: number
  /** What the manifest says when absent. */
  readonly thinking?: boolean
  /** It goes on after a crash, as its answer can be asked for later; by default its entry point decides. */
  readonly resumable?: boolean
  /** Answers this turn instead of the agent's own model and its fallbacks. A missing model makes the turn fail. */
  readonly model?: { readonly provider: string; readonly model: string }
  /** What the answer must be; the manifest's when absent. The text then comes in one piece, checked. */
  readonly responseFormat?: ResponseFormat
  /** Said to the model after the agent's own system prompt, in this turn. */
  readonly instructions?: string
  /** What the text carries beside what its entry point says. */
  readonly labels?: readonly Label[]
  /**
   * Agents, by id, that asked for it, the first one first, such as the one that made the schedule: the turn, and each
   * retry of it, may do no more than each of them.
   */
  readonly onBehalf?: readonly string[]
  /** The turn that asks for this one by a tool, and waits for it: both count against the same limit of calls. */
  readonly within?: string
  /**
   * Who speaks, where it is not the owner of the daemon: the same text whenever the same person or the same group does,
   * such as `telegram:4711`. By default the name that the sender signed in with.
   */
  readonly user?: string
  /** Daemons that the message came through; those of `within` when absent. */
  readonly hops?: number
}
/** A turn that is on disk. It runs to its end whether or not anyone listens. */
export interface AcceptedTurn {
  readonly id: string
  readonly agentId: string
  readonly sessionId: string
  /**
   * Every event from the start to `end`; throws the error that made the turn fail. A reader that is slower than the
   * model gets joined text deltas, so nothing is lost and nothing piles up. A reader that leaves early stops nothing.
   */
  events(): AsyncIterable<TurnEvent>
  /** The same without events. */
  result(): Promise<TurnResult>
  /** Ends the turn; what was said so far is kept and marked. */
  cancel(): void
}
export interface Compaction {
  readonly status: 'compacted' | 'not_needed'
  /** Messages. */
  readonly summarized: number
  readonly kept: number
  /** Messages at which a session is compacted by itself. */
  readonly threshold: number
  readonly summaryChars: number
}
export interface Chat {
  /**
   * Settles when the turn is durable. Throws before anything is written: `agent_not_found`, `invalid_request`,
   * `payload_too_large`, `conflict` when the agent is paused or stopped, `service_unavailable` for an automated entry
   * point in the agent's quiet hours. `also`: statements that are committed together with the turn.
   */
  accept(request: TurnRequest, also?: readonly Statement[]): Promise<AcceptedTurn>
  /**
   * Answers the message of a failed or interrupted turn again, as a new turn with the same text, images and options,
   * and hides the old turn. `id` is the id of the new turn. Throws `turn_not_found`, and `conflict` when the turn did
   * not fail or was retried or dropped already.
   */
  retry(turnId: string, entryPoint: EntryPoint, id?: string): Promise<AcceptedTurn>
  /** Takes the message of such a turn out of view. Throws as `retry` does. */
  drop(turnId: string): Promise<{ readonly agentId: string; readonly sessionId: string }>
  /**
   * Cancels the running turn of an agent, or of one of its sessions, whichever daemon on the database it runs at. Whether
   * there was one.
   */
  stop(agentId: string, sessionId?: string): Promise<boolean>
  /** Cancels a turn, wherever it waits or runs; nothing happens when it has ended. */
  cancel(turnId: string): void
  /** A turn that waits or runs in this process, to listen to it again. */
  attach(turnId: string): AcceptedTurn | undefined
  /** A turn that waits or runs at another daemon on the database, or that another one accepted for this daemon. */
  follow(turnId: string): Promise<AcceptedTurn | undefined>
  /**
   * Summarises the older messages of a session, by default the agent's active one. Throws what the model throws, and
   * then changes nothing.
   */
  compact(agentId: string, sessionId?: string): Promise<Compaction>
  /** Takes the newest summary back. How many messages are read in full again; 0 when there was none. */
  undoCompaction(agentId: string, sessionId?: string): Promise<number>
}
export const Chat = defineService<Chat>()('chat')

/** Where people type commands: the browser and programs over the API, `svc chat`, and chats of channels. */
export type CommandSurface = 'web' | 'cli' | 'channel'
/** One call of a slash command. */
export interface SlashCommandCall {
  readonly agentId: string
  /** The session of the conversation; the active one of the agent when it is undefined. */
  readonly sessionId: string | undefined
  readonly principal: Principal
  /** What follows the name; empty when nothing does. */
  readonly argument: string
}
/** A slash command of a plugin, for every way to talk to an agent. */
export interface SlashCommand {
  /** Without the slash: lower case letters, digits and `-`. */
  readonly name: string
  readonly aliases?: readonly string[]
  /** What may follow the name, such as `<id>` or `[name]`. */
  readonly takes?: string
  /** A few words, without a period. */
  readonly description: string
  /** Where it can be used; everywhere when absent. */
  readonly surfaces?: readonly CommandSurface[]
  /** What it leaves behind, as of a route: who may only talk is refused what lasts. */
  effectOf(argument: string): Effect
  /** The answer, as Markdown. A `Refusal` is shown to whoever sent the command. */
  run(call: SlashCommandCall): Promise<string> | string
}
/** The slash commands of a conversation, for other ways to talk to an agent, and for plugins that have some. */
export interface SlashCommands {
  /**
   * The answer to a command that asks for no turn. Of the agent's active session when none is named. Throws what the
   * service behind it throws.
   */
  run(conversation: Omit<SlashCommandCall, 'argument'>, text: string): Promise<string>
  /**
   * The session of an agent that `/sessions <reference>` means: its id, label, number in the list, or the beginning of
   * its id. Throws `session_not_found`.
   */
  findSession(agentId: string, reference: string): Promise<Session>
  /** Until it is disposed. Throws when a name is taken. */
  add(command: SlashCommand): Dispose
  /** Those that plugins added. */
  added(): readonly SlashCommand[]
}
export const SlashCommands = defineService<SlashCommands>()('slash-commands')

/** A turn as it stands, or stood when it ended. */
export interface TurnView {
  readonly id: string
  readonly agentId: string
  readonly sessionId: string
  readonly entryPoint: EntryPoint
  readonly state: TurnState
  /** What was said so far, as far as it is recorded. */
  readonly text: string
  /** Calls of the model that are recorded. */
  readonly iterations: number
  /** `null` when nobody keeps it. */
  readonly usage: { readonly input: number; readonly output: number } | null
  /** `null` when it is not known. */
  readonly costUsd: number | null
  /** Who answered, the last one where there were several; `null` when nobody keeps it. */
  readonly provider: string | null
  readonly model: string | null
  /** Why it did not end well. */
  readonly error: string | null
  /** The same with a code, of one that failed. */
  readonly failure: TurnFailure | null
  /** What it does now; `null` when it has ended or runs elsewhere. */
  readonly phase: (TurnPhase & { readonly since: string }) | null
  /** ISO 8601 UTC. */
  readonly createdAt: string
  /** Turns of the session that are answered before this one, the next one first. */
  readonly ahead: readonly string[]
}
/** Turns by their id, for whoever lost the connection they came by. */
export interface Turns {
  find(turnId: string): Promise<TurnView | undefined>
  /**
   * The events of a turn: live ones while it runs, one text and the end when it has ended. `undefined` when there is no
   * such turn. Throws the recorded error of a failed turn.
   */
  replay(turnId: string): Promise<Pick<AcceptedTurn, 'events' | 'result'> | undefined>
  /**
   * Begins a turn, or follows the one with this id: for work that is tried again until it is known to have been done.
   * Throws what `Chat.accept` and `replay` throw. A turn that failed is not begun again: another attempt has another id.
   */
  ensure(request: TurnRequest & { readonly id: string }): Promise<Pick<AcceptedTurn, 'events' | 'result'>>
}
export const Turns = defineService<Turns>()('turns')

/** A call of a tool that no model asks for, such as a step of a workflow. */
export interface ToolCallRequest {
  /** A UUID that is the same whenever this call is made again. The journal keeps the call as a turn with this id. */
  readonly id: string
  readonly agentId: string
  /** Of the conversation that approvals for a session hold in; it need not exist. */
  readonly sessionId: string
  readonly entryPoint: EntryPoint
  readonly tool: string
  readonly args: unknown
  /** Daemons that the request for the call came through. */
  readonly hops?: number
  /** What the arguments carry beside what the entry point says. */
  readonly labels?: readonly Label[]
  /** As the last answer said: the call counts against the limit per minute once. */
  readonly counted?: boolean
  /** The id was made for this very call: there is none before it to look for. */
  readonly isNew?: boolean
  readonly signal: AbortSignal
  /** Told how far the tool is. Never throws. */
  readonly progress?: ToolCallContext['progress']
  /** Who makes the call, where the tool can ask it. */
  readonly client?: ToolCallContext['client']
}
/**
 * - `ended`: the tool was called, or may not be called; `text` is its answer, or why it failed. `content` and
 *   `structured` are there for the first call with an id only.
 * - `waiting`: call again at `untilMs`, or after `ApprovalResolved` of an approval whose `turnId` is the id of the call.
 * - `unknown`: the process died during the call. The tool may have had its effect, and is not called again.
 */
export type ToolCallResult =
  | ({
      readonly outcome: 'ended'
      readonly text: string
      readonly failed: boolean
      readonly labels: readonly Label[]
    } & Pick<ToolResult, 'content' | 'structured'>)
  | { readonly outcome: 'waiting'; readonly counted: boolean; readonly untilMs?: number }
  | { readonly outcome: 'unknown' }
/** Calls of tools outside of turns. */
export interface ToolCalls {
  /**
   * Calls a tool as a turn of the agent does: by its grants, its limit per minute, the labels of the arguments and its
   * approvals, with the answer screened, and all of it in the journal, the traces, the audit trail and the metrics. The
   * second call with an id gets the result of the first one; a tool that only reads is called again after a crash.
   * Throws `agent_not_found`, `conflict` when the agent is paused or stopped, and the reason of the signal.
   */
  call(request: ToolCallRequest): Promise<ToolCallResult>
}
export const ToolCalls = defineService<ToolCalls>()('tool-calls')

/** A turn is about to begin. A `Refusal` is shown to whoever sent the message. */
export const TurnStarting = gate<{ readonly agent: Agent; readonly turnId: string; readonly sessionId: string }>(
  'chat:turn-starting',
)
/**
 * The system prompt of an agent, for each call of a model: a listener may add to it. What it adds should stay the same
 * from call to call, so that providers can keep what they have read.
 */
export const SystemPromptBuilt = transform<{ readonly agent: Agent; readonly text: string }>('chat:system-prompt-built')
/** The turn that a hook is about. */
export interface HookedTurn {
  readonly id: string
  readonly sessionId: string
  readonly entryPoint: EntryPoint
  /** `TurnRequest.user` */
  readonly user: string | undefined
}
/** What a listener adds to the messages of one turn. The session does not store it. */
export interface ContextAddition {
  /** What added it, as the traces of the turn name it. */
  readonly source: string
  /** Told to the model right before the message of the turn, the same in each of its calls. */
  readonly text: string
  /** What the text carries: the turn's words and calls carry it from then on. */
  readonly labels: readonly Label[]
  /** What the trace says was looked for, and what was found. */
  readonly trace: { readonly input: string; readonly output: string; readonly durationMs: number }
}
/** A turn has read its session and calls its model next: a listener may add what the model should know. */
export const TurnContextBuilt = transform<{
  readonly agent: Agent
  readonly turn: HookedTurn
  /** What the session holds for the model, the message of the turn among them. */
  readonly messages: readonly Message[]
  readonly additions: readonly ContextAddition[]
}>('chat:turn-context-built')
/**
 * A turn has its answer: statements for the batch that ends it, so that what is to follow a turn is on disk exactly
 * when the turn is done. A throw would make the turn fail. It may be applied again when the batch failed.
 */
export const TurnEnding = transform<{
  readonly agent: Agent
  readonly turn: HookedTurn
  readonly statements: readonly Statement[]
}>('chat:turn-ending')
/** A request to a model is complete: a listener may change what the model is told. */
export const PromptBuilt = transform<CompletionRequest>('chat:prompt-built')
/** A call of a model that is about to be made, in a turn or for a summary. */
export interface ModelCallAttempt {
  readonly agent: Agent
  readonly turnId: string
  readonly sessionId: string
  readonly model: ResolvedModel
  /** Upper bounds: what is sent, counted rather too high, and the longest answer. */
  readonly maxTokens: { readonly input: number; readonly output: number }
  /**
   * For a listener that reserves something for the call: registers the function that releases it. It runs once, when
   * the call is over. Its statements join the batch that records the usage, or get a batch of their own when nothing
   * was used.
   */
  readonly onRelease: (release: () => readonly Statement[]) => void
}
/** A `Refusal` ends the turn. Applied only to agents with a limit, and to all agents until the budgets are loaded. */
export const ModelCallStarting = gate<ModelCallAttempt>('chat:model-call-starting')
/** A turn ended with an answer, or was stopped. Its messages are on disk. */
export const TurnEnded = notify<{
  readonly agent: Agent
  readonly entryPoint: EntryPoint
  readonly result: TurnResult
  readonly durationMs: number
}>('chat:turn-ended')
/** A turn ended without an answer; `message` is what the caller was told. */
export const TurnFailed = notify<{
  readonly agent: Agent
  readonly entryPoint: EntryPoint
  readonly turnId: string
  readonly message: string
}>('chat:turn-failed')
/** A call the model asked for, before it is made. */
export interface ToolCallAttempt {
  readonly agent: Agent
  readonly turnId: string
  readonly sessionId: string
  /** Unique in the turn, and the same when the turn goes on after a restart. */
  readonly callId: string
  readonly tool: string
  readonly args: unknown
  readonly risk: 'read' | 'write' | 'execute'
  /** Labels its arguments carry. */
  readonly labels?: readonly string[]
  /** Agents, by id, that asked for the turn. */
  readonly onBehalf?: readonly string[]
  /** Why a person has to approve exactly this call, in sentences for that person. It is refused otherwise. */
  readonly refusal?: string
  /** Text from outside looked like instructions to the model: a person must approve every risky call of this turn. */
  readonly suspicion?: string
  /** Aborts when the turn is stopped: a listener that waits for a person stops waiting. */
  readonly signal: AbortSignal
  /** Called by a listener when a person approved exactly these arguments; says who. */
  readonly approve?: (by: string) => void
  /** Called by a listener that begins to wait for a person. `signal` may abort then: the same call is made again later. */
  readonly waits?: () => void
}
/**
 * Before `ToolCallStarting`, which may ask a person: a listener refuses what its tool would refuse whatever is answered.
 * It does not wait. A `Refusal` is told to the model as the result of the call.
 */
export const ToolCallChecking = gate<ToolCallAttempt>('tools:call-checking')
/** A listener may wait, for a person to decide. A `Refusal` is told to the model as the result of the call. */
export const ToolCallStarting = gate<ToolCallAttempt>('tools:call-starting')
/** A tool was called, and its result goes to the model. */
export const ToolCallEnded = notify<{
  readonly agent: Agent
  readonly turnId: string
  readonly tool: string
  readonly failed: boolean
  readonly durationMs: number
}>('tools:call-ended')
