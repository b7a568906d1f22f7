import * as v from 'valibot'
import type { ResponseFormat } from 'svc/providers'
import { currentActor } from 'svc/internal'
import type { Actor } from 'svc/internal'
import { omitUndefined } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { AcceptedTurn, TurnEvent, TurnPhase, TurnRequest, TurnResult } from '../contract.ts'
import type { ToolCallCounter } from '../safety/loop-guard.ts'
import { EventLog } from './event-log.ts'
import { FormatInput } from './response-format.ts'

const WHY = {
  cancel: 'the turn was cancelled',
  unload: 'the service is being replaced',
  lost: 'another daemon has taken the session over',
} as const
/** Why a turn was ended from outside. `lost`: nothing more is written of it here. */
export class TurnStopped extends Error {
  override readonly name = 'TurnStopped'
  readonly by: 'cancel' | 'unload' | 'lost'
  constructor(by: 'cancel' | 'unload' | 'lost') {
    super(WHY[by])
    this.by = by
  }
}

/** What a turn runs with beside its messages. The journal keeps it, so that the turn can resume after a restart. */
export type TurnOptions = Pick<
  TurnRequest,
  'temperature' | 'maxTokens' | 'thinking' | 'responseFormat' | 'instructions' | 'model' | 'hops' | 'user'
> & {
  /** What the sender presented beside the API key: see `Actor`. */
  readonly credential?: string
  /** `Daemon.keyMark` when whoever holds the API key sent the message, where other daemons may run the turn. */
  readonly keyMark?: string
}
type Loose<T> = { readonly [K in keyof T]?: T[K] | undefined }
export function toOptions(request: Loose<TurnOptions>): TurnOptions {
  const { temperature, maxTokens, thinking, responseFormat, instructions, model, hops, user, credential, keyMark } =
    request
  return omitUndefined({
    temperature,
    maxTokens,
    thinking,
    responseFormat,
    instructions,
    model,
    hops,
    user,
    credential,
    keyMark,
  })
}

/** Reads the options that the journal keeps of a turn. */
export function readOptions(json: string): TurnOptions {
  return toOptions(v.parse(StoredOptions, json))
}
const StoredOptions = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    temperature: v.optional(v.number()),
    maxTokens: v.optional(v.number()),
    thinking: v.optional(v.boolean()),
    responseFormat: v.optional(FormatInput),
    instructions: v.optional(v.string()),
    model: v.optional(v.object({ provider: v.string(), model: v.string() })),
    hops: v.optional(v.number()),
    user: v.optional(v.string()),
    credential: v.optional(v.string()),
    keyMark: v.optional(v.string()),
  }),
)

const USUAL_PHASES: ReadonlySet<TurnPhase['phase']> = new Set([
  'queued',
  'waiting_for_model',
  'streaming',
  'running_tools',
] as const)
const DETAILS = { streaming: 'the model is answering', running_tools: 'tools are running' } as const

type LiveTurnFacts = Pick<
  LiveTurn,
  'id' | 'agentId' | 'sessionId' | 'entryPoint' | 'options' | 'resumed' | 'resumable'
> & {
  readonly waiting?: boolean
  readonly toolCalls?: ToolCallCounter | undefined
  readonly onBehalf?: readonly string[] | undefined
  readonly sender?: Actor | undefined
  readonly keyGeneration?: number | undefined
}

/** A turn that waits, runs or has just ended, in this process. */
export class LiveTurn implements AcceptedTurn {
  readonly id: string
  readonly agentId: string
  readonly sessionId: string
  readonly entryPoint: TurnRequest['entryPoint']
  readonly options: TurnOptions
  /** Agents, by id, that asked for it, the first one first. */
  readonly onBehalf: readonly string[]
  /** Who sent the message, where that is known. */
  readonly sender: Actor | undefined
  /** `Daemon.keyGeneration` when whoever holds the API key sent the message; not known after a restart. */
  readonly keyGeneration: number | undefined
  /** An earlier process began it, or the database was away: what is recorded of it counts. */
  resumed: boolean
  /** No caller waits for its answer, so it may resume later. */
  readonly resumable: boolean
  /** A person has to decide about a call. The journal knows, and the turn waits on when this process ends. */
  waiting: boolean
  /** Makes its batches fail once another daemon has taken its session over. Empty where no other daemon can be. */
  fence: readonly Statement[] = []
  /** Settles when its message is on record, or was refused. */
  onDisk: Promise<unknown> | undefined
  /** Its messages were deleted while it ran: nothing more is written to the session. */
  forgotten = false
  /** Shared with the turns that agents run for this one. */
  readonly toolCalls: ToolCallCounter
  /** The required format of the answer. */
  format: ResponseFormat | undefined
  /** What it does now. */
  phase: TurnPhase & { readonly since: string } = { phase: 'queued', detail: '', since: new Date().toISOString() }
  readonly #log = new EventLog()
  readonly #abort = new AbortController()
  readonly #result = Promise.withResolvers<TurnResult>()

  constructor(facts: LiveTurnFacts) {
    this.id = facts.id
    this.agentId = facts.agentId
    this.sessionId = facts.sessionId
    this.entryPoint = facts.entryPoint
    this.options = facts.options
    this.onBehalf = facts.onBehalf ?? []
    this.sender = facts.sender ?? currentActor()
    this.keyGeneration = facts.keyGeneration
    this.resumed = facts.resumed
    this.resumable = facts.resumable
    this.waiting = facts.waiting ?? false
    this.toolCalls = facts.toolCalls ?? { calls: 0 }
    // Not every caller asks for the result; the failure is recorded and in the events as well.
    this.#result.promise.catch(() => undefined)
  }

  /** Who speaks, where it is not the owner. */
  get user(): string | undefined {
    return this.options.user
  }
  get signal(): AbortSignal {
    return this.#abort.signal
  }
  get stopped(): TurnStopped | undefined {
    return this.signal.reason instanceof TurnStopped ? this.signal.reason : undefined
  }

  events(): AsyncIterable<TurnEvent> {
    return this.#log
  }
  /** The events from this number on. */
  reader(from: number): ReturnType<EventLog['reader']> {
    return this.#log.reader(from)
  }
  snapshot(): ReturnType<EventLog['snapshot']> {
    return this.#log.snapshot()
  }
  result(): Promise<TurnResult> {
    return this.#result.promise
  }
  cancel(): void {
    this.stop('cancel')
  }
  stop(by: TurnStopped['by']): void {
    this.#abort.abort(new TurnStopped(by))
  }

  push(event: TurnEvent): void {
    if (event.type === 'phase') return this.enter(event)
    if (event.type === 'text' || event.type === 'reasoning') this.#begin('streaming')
    else if (event.type === 'tool-started') this.#begin('running_tools')
    this.#log.push(event)
  }
  /** Readers hear of usual phases only after they heard of an unusual one. */
  enter(
    { phase, detail, retryAt, attempt, progress, total }: TurnPhase,
    isSilent = USUAL_PHASES.has(this.phase.phase) && USUAL_PHASES.has(phase),
  ): void {
    const next = omitUndefined({ phase, detail, retryAt, attempt, progress, total })
    this.phase = { ...next, since: new Date().toISOString() }
    if (!isSilent) this.#log.push({ type: 'phase', ...next })
  }
  #begin(phase: 'streaming' | 'running_tools'): void {
    if (this.phase.phase !== phase) this.enter({ phase, detail: DETAILS[phase] })
  }
  finish(result: TurnResult): void {
    this.#log.push({ type: 'end', result })
    this.#log.end()
    this.#result.resolve(result)
  }
  fail(error: unknown): void {
    this.#log.fail(error)
    this.#result.reject(error)
  }
}
