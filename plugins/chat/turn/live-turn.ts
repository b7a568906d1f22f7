import type { ResponseFormat } from 'svc/providers'
import { currentActor } from 'svc/internal'
import type { AcceptedTurn, TurnEvent, TurnPhase, TurnRequest, TurnResult } from '../contract.ts'
import { EventLog } from './event-log.ts'
import type { ToolCallCounter } from '../safety/loop-guard.ts'

/** Why a turn was ended from outside. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
  readonly by: 'cancel' | 'unload'
  constructor(by: 'cancel' | 'unload') {
    super(by === 'cancel' ? 'the turn was cancelled' : 'the service is being replaced')
    this.by = by
  }
}

/** What a turn runs with beside its messages; kept in the journal, so that it can go on after a restart. */
export type TurnOptions = Pick<
  TurnRequest,
  'temperature' | 'maxTokens' | 'thinking' | 'responseFormat' | 'instructions' | 'model'
>
type Loose<T> = { readonly [K in keyof T]?: T[K] | undefined }
export function toOptions({
  temperature,
  maxTokens,
  thinking,
  responseFormat,
  instructions,
  model,
}: Loose<TurnOptions>): TurnOptions {
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(responseFormat === undefined ? {} : { responseFormat }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(model === undefined ? {} : { model }),
  }
}

const usual: ReadonlySet<TurnPhase['phase']> = new Set([
  'queued',
  'waiting_for_model',
  'streaming',
  'running_tools',
] as const)
const usualWords = { streaming: 'the model is answering', running_tools: 'tools are running' } as const

/** A turn that waits, runs or has just ended, in this process. */
export class LiveTurn implements AcceptedTurn {
  readonly id: string
  readonly agentId: string
  readonly sessionId: string
  readonly entryPoint: TurnRequest['entryPoint']
  readonly options: TurnOptions
  /** Who sent the message, when it was in this process. */
  readonly asker = currentActor()
  /** It was begun by an earlier process, so what is recorded of it counts. */
  readonly resumed: boolean
  /** Nobody waits for its answer, so it may go on later. */
  readonly resumable: boolean
  /** A person has to decide about a call. So it is on disk, and so it stays when this process ends. */
  waiting: boolean
  /** Its messages were deleted while it ran: nothing more of it is written to the session. */
  forgotten = false
  /** Calls of tools in the run this turn belongs to. */
  readonly tally: ToolCallCounter
  /** What the answer must be. */
  format: ResponseFormat | undefined
  /** What it does now. */
  phase: TurnPhase & { readonly since: string } = { phase: 'queued', detail: '', since: new Date().toISOString() }
  readonly #log = new EventLog()
  readonly #abort = new AbortController()
  readonly #result = Promise.withResolvers<TurnResult>()

  constructor(
    facts: Pick<LiveTurn, 'id' | 'agentId' | 'sessionId' | 'entryPoint' | 'options' | 'resumed' | 'resumable'> & {
      readonly waiting?: boolean
      readonly tally?: ToolCallCounter | undefined
    },
  ) {
    this.id = facts.id
    this.agentId = facts.agentId
    this.sessionId = facts.sessionId
    this.entryPoint = facts.entryPoint
    this.options = facts.options
    this.resumed = facts.resumed
    this.resumable = facts.resumable
    this.waiting = facts.waiting ?? false
    this.tally = facts.tally ?? { calls: 0 }
    // Nobody has to ask for the result; the failure is recorded and in the events as well.
    this.#result.promise.catch(() => undefined)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }
  get stopped(): Stopped | undefined {
    return this.signal.reason instanceof Stopped ? this.signal.reason : undefined
  }

  events(): AsyncIterable<TurnEvent> {
    return this.#log
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
  stop(by: Stopped['by']): void {
    this.#abort.abort(new Stopped(by))
  }

  push(event: TurnEvent): void {
    if (event.type === 'phase') return this.enter(event)
    if (event.type === 'text' || event.type === 'reasoning') this.#begin('streaming')
    else if (event.type === 'tool-started') this.#begin('running_tools')
    this.#log.push(event)
  }
  /** Readers are told of the usual course only when they were told of something else before. */
  enter({ phase, detail, retryAt, attempt }: TurnPhase): void {
    const told = usual.has(this.phase.phase) && usual.has(phase)
    const next = { phase, detail, ...(retryAt !== undefined && { retryAt }), ...(attempt !== undefined && { attempt }) }
    this.phase = { ...next, since: new Date().toISOString() }
    if (!told) this.#log.push({ type: 'phase', ...next })
  }
  #begin(phase: 'streaming' | 'running_tools'): void {
    if (this.phase.phase !== phase) this.enter({ phase, detail: usualWords[phase] })
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
