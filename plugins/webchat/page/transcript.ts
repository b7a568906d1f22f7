import { splitAttached } from './attached.ts'
import type { AttachedFile } from './attached.ts'
import type { EndedTurn, FollowedTurn, ServerFrame, SessionMessage } from './wire.ts'

export interface ToolCall {
  readonly name: string
  readonly id: string | undefined
  readonly state: 'running' | 'done' | 'failed' | 'unknown'
  readonly input: unknown
  readonly result: string | undefined
}
export type Part = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'tool'; readonly call: ToolCall }
export interface Cost {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly iterations: number | undefined
  /** `null`: the price is unknown. */
  readonly costUsd: number | null | undefined
  readonly provider: string | undefined
  readonly model: string | undefined
}
export interface Question {
  readonly kind: 'question'
  readonly id: number
  readonly text: string
  readonly files: readonly AttachedFile[]
  /** What the agent was given of the files. */
  readonly quoted?: string
  /** The entry point, when that was not this page. */
  readonly from?: string | undefined
  /** The recorded message. */
  readonly messageIds?: readonly string[]
}
/** What an answer waits for, as the daemon reports it. */
export interface Phase {
  readonly phase: string
  readonly detail: string
  readonly retryAtMs: number | undefined
}
export interface Answer {
  readonly kind: 'answer'
  readonly id: number
  readonly parts: readonly Part[]
  /**
   * `detached`: the connection went while the daemon was answering; the answer is read from the session when it is
   * there.
   */
  readonly state: 'thinking' | 'streaming' | 'done' | 'stopped' | 'failed' | 'detached' | 'unanswered'
  readonly problem: string | undefined
  /** Why it ends here, when that is neither a failure nor the decision of the model. */
  readonly aside: string | undefined
  readonly cost: Cost | undefined
  /** When it ended. */
  readonly at?: string | undefined
  /** Once the daemon has named it. */
  readonly turnId?: string | undefined
  /** The reasoning of the model before its answer. */
  readonly thinking?: string | undefined
  readonly phase?: Phase | undefined
  /** The daemon keeps the message whose turn failed or was interrupted: it can be retried or dropped. */
  readonly canRetry?: boolean
  /** The recorded messages. */
  readonly messageIds?: readonly string[]
}
export type Entry = Question | Answer
export interface Transcript {
  readonly entries: readonly Entry[]
  readonly nextId: number
}

const asides: Readonly<Record<string, string>> = {
  cancelled: 'Stopped.',
  length: 'The answer reached the longest length that is set for this agent.',
  refused: 'The provider refused to go on.',
  iterations: 'Stopped after as many steps as this agent may take for one answer.',
}

/** Of a recorded message. */
const recordedAsides: Readonly<Record<string, string>> = {
  cancelled: 'Stopped.',
  cut: 'The answer was cut off here.',
}

export const emptyTranscript: Transcript = { entries: [], nextId: 1 }

const isOpen = (entry: Entry): entry is Answer =>
  entry.kind === 'answer' && (entry.state === 'thinking' || entry.state === 'streaming')
/** The answer that is being given, if any; those that wait come after it. */
export function openAnswer(transcript: Transcript): Answer | undefined {
  return transcript.entries.find(isOpen)
}
export function answerOf(transcript: Transcript, turnId: string): Answer | undefined {
  return transcript.entries.findLast((entry): entry is Answer => entry.kind === 'answer' && entry.turnId === turnId)
}
export function entryOf({ entries }: Transcript, messageId: string): Entry | undefined {
  return entries.find(({ messageIds }) => messageIds?.includes(messageId))
}
/** The newest message this page sent that the daemon has not named yet. */
export function unnamed(transcript: Transcript): Answer | undefined {
  return transcript.entries.findLast((entry): entry is Answer => isOpen(entry) && entry.turnId === undefined)
}
export function questionOf(transcript: Transcript, answer: Answer): Question | undefined {
  const before = transcript.entries[transcript.entries.indexOf(answer) - 1]
  return before?.kind === 'question' ? before : undefined
}

/** Shows a turn that another client started, or that started before this page was opened, from its beginning. */
export function join(
  transcript: Transcript,
  { turn_id: turnId, content, entry_point: from }: FollowedTurn,
): Transcript {
  const known = answerOf(transcript, turnId)
  const fresh = { parts: [], state: 'thinking', problem: undefined, aside: undefined, cost: undefined } as const
  if (known) return replace(transcript, { ...fresh, kind: 'answer', id: known.id, turnId })
  return {
    entries: [
      ...transcript.entries,
      { kind: 'question', id: transcript.nextId, ...splitAttached(content), from: entryPoints[from] },
      { ...fresh, kind: 'answer', id: transcript.nextId + 1, turnId },
    ],
    nextId: transcript.nextId + 2,
  }
}
const entryPoints: Readonly<Record<string, string>> = {
  cli: 'the command line',
  channel: 'a channel',
  schedule: 'a schedule',
  trigger: 'a trigger',
  workflow: 'a workflow',
  hook: 'a webhook',
  agent: 'another agent',
  a2a: 'another agent',
  openai: 'the OpenAI API',
}
/** The daemon reported the turn of an answer of this page. */
export function name(transcript: Transcript, answer: Answer, turnId: string): Transcript {
  return replace(transcript, { ...answer, turnId })
}

export function ask(transcript: Transcript, text: string, files: readonly AttachedFile[] = []): Transcript {
  const question: Question = { kind: 'question', id: transcript.nextId, text, files }
  const answer: Answer = {
    kind: 'answer',
    id: transcript.nextId + 1,
    parts: [],
    state: 'thinking',
    problem: undefined,
    aside: undefined,
    cost: undefined,
  }
  return { entries: [...transcript.entries, question, answer], nextId: transcript.nextId + 2 }
}

/**
 * Applies a frame to an open answer: that of the given turn, or the one that is being given. A frame without an open
 * answer changes nothing.
 */
export function receive(transcript: Transcript, frame: ServerFrame, turnId?: string, at?: string): Transcript {
  const named = turnId === undefined ? undefined : answerOf(transcript, turnId)
  const answer = turnId === undefined ? openAnswer(transcript) : named && isOpen(named) ? named : undefined
  if (!answer) return transcript
  const change = changeOf(answer, frame, at)
  return change ? replace(transcript, { ...answer, ...change }) : transcript
}

function changeOf(answer: Answer, frame: ServerFrame, at: string | undefined): Partial<Answer> | undefined {
  switch (frame.type) {
    case 'thinking':
      return { turnId: frame.turn_id ?? answer.turnId }
    case 'thinking_delta':
      return { thinking: (answer.thinking ?? '') + frame.content, phase: undefined }
    case 'phase':
      return { phase: toPhase(frame) }
    case 'text_delta':
      return { state: 'streaming', phase: undefined, parts: appendText(answer.parts, frame.content) }
    case 'tool_start':
      return { state: 'streaming', phase: undefined, parts: [...answer.parts, startedCall(frame)] }
    case 'tool_end':
    case 'tool_result':
      return { parts: settleCall(answer.parts, frame) }
    case 'response':
      return { ...completedAnswer(answer, frame), at }
    case 'error':
      return ended(answer, { state: 'failed', problem: frame.content, aside: undefined })
    default:
      return undefined
  }
}

type Frame<T extends ServerFrame['type']> = Extract<ServerFrame, { type: T }>
function toPhase({ phase, detail, retry_at: retryAt }: Frame<'phase'>): Phase {
  return { phase, detail, retryAtMs: retryAt ? Date.parse(retryAt) || undefined : undefined }
}
function startedCall({ tool, id }: Frame<'tool_start'>): Part {
  return { kind: 'tool', call: { name: tool, id, state: 'running', input: undefined, result: undefined } }
}
function completedAnswer(answer: Answer, frame: Frame<'response'>): Partial<Answer> {
  return {
    phase: undefined,
    thinking: frame.thinking ?? answer.thinking,
    state: frame.stop === 'cancelled' ? 'stopped' : 'done',
    aside: asides[frame.stop ?? ''],
    parts: completeText(answer.parts, frame.content).map(endCall),
    cost: {
      inputTokens: frame.input_tokens,
      outputTokens: frame.output_tokens,
      iterations: frame.iterations,
      costUsd: frame.cost_usd,
      provider: frame.provider,
      model: frame.model,
    },
  }
}

export function fail(transcript: Transcript, problem: string): Transcript {
  return endAnswer(transcript, { state: 'failed', problem, aside: undefined })
}
export function detach(transcript: Transcript): Transcript {
  return endAnswer(transcript, { state: 'detached', problem: undefined, aside: undefined })
}
export function markStopped(transcript: Transcript): Transcript {
  return endAnswer(transcript, { state: 'stopped', problem: undefined, aside: asides['cancelled'] })
}

/** Removes the answer of a turn and its question. */
export function withoutTurn(transcript: Transcript, turnId: string): Transcript {
  const answer = answerOf(transcript, turnId)
  if (!answer) return transcript
  const question = questionOf(transcript, answer)
  return { ...transcript, entries: transcript.entries.filter((entry) => entry !== answer && entry !== question) }
}

/** Removes a question and its answer, so that it can be asked again. */
export function withoutLastExchange(transcript: Transcript): Transcript {
  const at = transcript.entries.findLastIndex((entry) => entry.kind === 'question')
  return at < 0 ? transcript : { ...transcript, entries: transcript.entries.slice(0, at) }
}

export function lastQuestion(transcript: Transcript): Question | undefined {
  return transcript.entries.findLast((entry) => entry.kind === 'question')
}

/**
 * The recorded messages as entries. Entries keep their ids, and answers the figures this page received, so that nothing
 * on screen is rendered again.
 */
export function fromRecord(messages: readonly SessionMessage[], known: Transcript): Transcript {
  const reader = new RecordReader(known)
  for (const message of messages) {
    if (message.role === 'User') reader.question(message)
    else if (message.role === 'Assistant') reader.answer(message)
  }
  return reader.end()
}

const INTERRUPTED = 'The daemon stopped before this answer was complete.'

class RecordReader {
  readonly #known: Transcript
  readonly #entries: Entry[] = []
  readonly #costs = new Map<string, Cost>()
  readonly #problems = new Map<string | undefined, string>()
  readonly #thoughts = new Map<string | undefined, string>()
  #nextId: number
  /** The turn of the last question. */
  #turnId: string | undefined
  /** Why that turn failed. */
  #failure: string | undefined

  constructor(known: Transcript) {
    this.#known = known
    this.#nextId = known.nextId
    for (const entry of known.entries) {
      if (entry.kind !== 'answer') continue
      if (entry.cost) this.#costs.set(entry.turnId ?? textOf(entry.parts), entry.cost)
      if (entry.turnId === undefined) continue
      if (entry.thinking !== undefined) this.#thoughts.set(entry.turnId, entry.thinking)
      if (entry.problem !== undefined) this.#problems.set(entry.turnId, entry.problem)
    }
  }

  question(message: SessionMessage): void {
    this.#endQuestion()
    this.#entries.push({
      kind: 'question',
      id: this.#idFor('question'),
      ...splitAttached(message.content),
      messageIds: idsOf(message),
    })
    this.#turnId = message.turn_id
    this.#failure = message.failed ? (message.error?.message ?? 'The answer failed.') : undefined
  }

  /** Several messages of the agent in a row are one answer. */
  answer(message: SessionMessage): void {
    const last = this.#entries.at(-1)
    const begun = last?.kind === 'answer' ? last : undefined
    if (begun) this.#entries.pop()
    const parts = [...(begun?.parts ?? []), ...recordedParts(message)]
    const thoughts = [begun?.thinking, message.thinking].filter((text) => text).join('\n\n')
    const isInterrupted = message.mark === 'interrupted'
    this.#entries.push({
      kind: 'answer',
      id: begun?.id ?? this.#idFor('answer'),
      parts,
      ...this.#outcome(message.mark),
      cost: this.#costs.get(message.turn_id ?? '') ?? this.#costs.get(textOf(parts)),
      at: message.created_at,
      turnId: message.turn_id,
      canRetry: this.#failure !== undefined || isInterrupted,
      thinking: thoughts === '' ? this.#thoughts.get(message.turn_id) : thoughts,
      messageIds: [...(begun?.messageIds ?? []), ...idsOf(message)],
    })
  }

  end(): Transcript {
    this.#endQuestion()
    return { entries: this.#entries, nextId: this.#nextId }
  }

  #outcome(mark: SessionMessage['mark']): Pick<Answer, 'state' | 'problem' | 'aside'> {
    const problem = this.#failure ?? (mark === 'interrupted' ? INTERRUPTED : undefined)
    const aside = recordedAsides[mark ?? '']
    if (problem !== undefined) return { state: 'failed', problem, aside }
    return { state: mark === 'cancelled' ? 'stopped' : 'done', problem, aside }
  }

  #endQuestion(): void {
    if (this.#entries.at(-1)?.kind !== 'question') return
    const problem = this.#failure ?? this.#problems.get(this.#turnId)
    this.#entries.push({
      kind: 'answer',
      id: this.#idFor('answer'),
      parts: [],
      state: problem === undefined ? 'unanswered' : 'failed',
      problem,
      aside: undefined,
      cost: undefined,
      turnId: this.#turnId,
      thinking: this.#thoughts.get(this.#turnId),
      canRetry: this.#failure !== undefined,
    })
  }

  #idFor(kind: Entry['kind']): number {
    const shown = this.#known.entries[this.#entries.length]
    return shown?.kind === kind ? shown.id : this.#nextId++
  }
}

const idsOf = ({ id }: SessionMessage): readonly string[] => (id === undefined ? [] : [id])

/**
 * Turns whose cost and failure this page does not know, newest first: messages do not contain them. What is older than
 * its conversation was copied into it, and is the turn of another one.
 */
export function unaccounted({ entries }: Transcript, begunAt = ''): readonly string[] {
  const isUnaccounted = (entry: Entry): entry is Answer =>
    entry.kind === 'answer' && entry.cost === undefined && entry.problem === undefined
  return entries
    .filter(isUnaccounted)
    .flatMap(({ turnId, at }) => (turnId === undefined || (at !== undefined && at < begunAt) ? [] : [turnId]))
    .toReversed()
}
export function withAccount(transcript: Transcript, turnId: string, turn: EndedTurn): Transcript {
  return {
    ...transcript,
    entries: transcript.entries.map((entry) =>
      entry.kind === 'answer' && entry.turnId === turnId ? accounted(entry, turn) : entry,
    ),
  }
}

function accounted(
  answer: Answer,
  { state, error, usage, iterations, cost_usd: costUsd, provider, model }: EndedTurn,
): Answer {
  const cost: Cost | undefined = usage
    ? {
        inputTokens: usage.input_tokens,
        outputTokens: usage.output_tokens,
        iterations,
        costUsd,
        provider: provider ?? undefined,
        model: model ?? undefined,
      }
    : undefined
  if (state === 'failed') return { ...answer, cost, state, problem: error ?? 'The answer failed.', aside: undefined }
  if (state === 'cancelled') return { ...answer, cost, state: 'stopped', aside: asides['cancelled'] }
  return { ...answer, cost }
}

export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n')
}

function recordedParts(message: SessionMessage): readonly Part[] {
  const tools = (message.tools ?? []).map((tool): Part => {
    const state = tool.is_error ? 'failed' : tool.result === undefined || tool.result === null ? 'unknown' : 'done'
    return {
      kind: 'tool',
      call: { name: tool.name, id: undefined, state, input: tool.input, result: tool.result ?? undefined },
    }
  })
  return message.content === '' ? tools : [{ kind: 'text', text: message.content }, ...tools]
}

function endAnswer(transcript: Transcript, how: Pick<Answer, 'state' | 'problem' | 'aside'>): Transcript {
  return transcript.entries.filter(isOpen).reduce((known, answer) => replace(known, ended(answer, how)), transcript)
}
function ended(answer: Answer, how: Pick<Answer, 'state' | 'problem' | 'aside'>): Answer {
  return { ...answer, ...how, phase: undefined, parts: answer.parts.map(endCall) }
}

function replace(transcript: Transcript, answer: Answer): Transcript {
  return {
    ...transcript,
    entries: transcript.entries.map((entry) => (entry.id === answer.id && entry.kind === 'answer' ? answer : entry)),
  }
}

function appendText(parts: readonly Part[], text: string): readonly Part[] {
  const last = parts.at(-1)
  if (last?.kind === 'text') return [...parts.slice(0, -1), { kind: 'text', text: last.text + text }]
  return [...parts, { kind: 'text', text }]
}

// A daemon that names no call ids still ends its calls in order.
function settleCall(
  parts: readonly Part[],
  frame: Extract<ServerFrame, { type: 'tool_end' | 'tool_result' }>,
): readonly Part[] {
  const at = parts.findIndex(
    (part) =>
      part.kind === 'tool' &&
      part.call.state === 'running' &&
      part.call.name === frame.tool &&
      (frame.id === undefined || part.call.id === undefined || part.call.id === frame.id),
  )
  const call: ToolCall = {
    name: frame.tool,
    id: frame.id,
    input: frame.input,
    result: frame.result ?? undefined,
    state: frame.is_error ? 'failed' : 'done',
  }
  return at < 0 ? [...parts, { kind: 'tool', call }] : parts.with(at, { kind: 'tool', call })
}

function endCall(part: Part): Part {
  return part.kind === 'tool' && part.call.state === 'running'
    ? { kind: 'tool', call: { ...part.call, state: 'unknown' } }
    : part
}

// The final frame repeats the whole text; it wins when the deltas do not add up to it.
function completeText(parts: readonly Part[], content: string): readonly Part[] {
  const streamed = parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
  if (content === '' || streamed.trim().endsWith(content.trim())) return parts
  return [...parts.filter((part) => part.kind === 'tool'), { kind: 'text', text: content }]
}
