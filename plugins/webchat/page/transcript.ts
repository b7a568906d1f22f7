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
  /** `null`: nobody knows the price. */
  readonly costUsd: number | null | undefined
  readonly provider: string | undefined
  readonly model: string | undefined
}
export interface Question {
  readonly kind: 'question'
  readonly id: number
  readonly text: string
  /** Where it came in, when that was not this page. */
  readonly from?: string | undefined
}
/** What an answer waits for, as the daemon says it. */
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
  /** Why it ends where it ends, when that is neither a failure nor what the model wanted. */
  readonly aside: string | undefined
  readonly cost: Cost | undefined
  /** Once the daemon has named it. */
  readonly turnId?: string | undefined
  /** What the model thought before it answered. */
  readonly thinking?: string | undefined
  readonly phase?: Phase | undefined
  /** The daemon keeps the message that failed: it can be asked again or dropped. */
  readonly kept?: boolean
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
/** The newest message this page sent that the daemon has not named yet. */
export function unnamed(transcript: Transcript): Answer | undefined {
  return transcript.entries.findLast((entry): entry is Answer => isOpen(entry) && entry.turnId === undefined)
}
export function questionOf(transcript: Transcript, answer: Answer): Question | undefined {
  const before = transcript.entries[transcript.entries.indexOf(answer) - 1]
  return before?.kind === 'question' ? before : undefined
}

/** A turn that somebody else began, or that began before this page was opened: what is shown of it is drawn anew. */
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
      { kind: 'question', id: transcript.nextId, text: content, from: entryPoints[from] },
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
/** The daemon says which turn an answer of this page is. */
export function name(transcript: Transcript, answer: Answer, turnId: string): Transcript {
  return replace(transcript, { ...answer, turnId })
}

export function ask(transcript: Transcript, text: string): Transcript {
  const question: Question = { kind: 'question', id: transcript.nextId, text }
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

/** What a frame changes in the open answer, that of a turn where it says one; a frame without one changes nothing. */
export function receive(transcript: Transcript, frame: ServerFrame, turnId?: string): Transcript {
  const of = turnId === undefined ? undefined : answerOf(transcript, turnId)
  const answer = turnId === undefined ? openAnswer(transcript) : of && isOpen(of) ? of : undefined
  if (!answer) return transcript
  switch (frame.type) {
    case 'thinking':
      return replace(transcript, { ...answer, turnId: frame.turn_id ?? answer.turnId })
    case 'thinking_delta':
      return replace(transcript, {
        ...answer,
        thinking: (answer.thinking ?? '') + frame.content,
        phase: undefined,
      })
    case 'phase':
      return replace(transcript, {
        ...answer,
        phase: {
          phase: frame.phase,
          detail: frame.detail,
          retryAtMs: frame.retry_at ? Date.parse(frame.retry_at) || undefined : undefined,
        },
      })
    case 'text_delta':
      return replace(transcript, {
        ...answer,
        state: 'streaming',
        phase: undefined,
        parts: appendText(answer.parts, frame.content),
      })
    case 'tool_start':
      return replace(transcript, {
        ...answer,
        phase: undefined,
        state: 'streaming',
        parts: [
          ...answer.parts,
          {
            kind: 'tool',
            call: { name: frame.tool, id: frame.id, state: 'running', input: undefined, result: undefined },
          },
        ],
      })
    case 'tool_end':
    case 'tool_result':
      return replace(transcript, { ...answer, parts: settleCall(answer.parts, frame) })
    case 'response':
      return replace(transcript, {
        ...answer,
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
      })
    case 'error':
      return end(transcript, answer, { state: 'failed', problem: frame.content, aside: undefined })
    default:
      return transcript
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

/** Takes a question and what followed it out again, so that it can be asked anew. */
export function withoutLastExchange(transcript: Transcript): Transcript {
  const at = transcript.entries.findLastIndex((entry) => entry.kind === 'question')
  return at < 0 ? transcript : { ...transcript, entries: transcript.entries.slice(0, at) }
}

export function lastQuestion(transcript: Transcript): Question | undefined {
  return transcript.entries.findLast((entry) => entry.kind === 'question')
}

/**
 * The recorded messages. Entries keep their ids and answers the figures this page saw, so that nothing on screen is
 * drawn anew.
 */
export function fromRecord(messages: readonly SessionMessage[], known: Transcript): Transcript {
  const costs = new Map<string, Cost>()
  const problems = new Map<string | undefined, string>()
  const thoughts = new Map<string | undefined, string>()
  for (const entry of known.entries) {
    if (entry.kind !== 'answer') continue
    if (entry.cost) costs.set(entry.turnId ?? textOf(entry.parts), entry.cost)
    if (entry.turnId !== undefined && entry.thinking !== undefined) thoughts.set(entry.turnId, entry.thinking)
    if (entry.turnId !== undefined && entry.problem !== undefined) problems.set(entry.turnId, entry.problem)
  }
  const entries: Entry[] = []
  let nextId = known.nextId
  const idFor = (kind: Entry['kind']): number => {
    const shown = known.entries[entries.length]
    return shown?.kind === kind ? shown.id : nextId++
  }
  let asked: string | undefined
  /** Why the turn of the last message failed. */
  let failed: string | undefined
  const endQuestion = (): void => {
    if (entries.at(-1)?.kind !== 'question') return
    const problem = failed ?? problems.get(asked)
    entries.push({
      kind: 'answer',
      id: idFor('answer'),
      parts: [],
      state: problem === undefined ? 'unanswered' : 'failed',
      problem,
      aside: undefined,
      cost: undefined,
      turnId: asked,
      thinking: thoughts.get(asked),
      kept: failed !== undefined,
    })
  }
  for (const message of messages) {
    if (message.role === 'User') {
      endQuestion()
      entries.push({ kind: 'question', id: idFor('question'), text: message.content })
      asked = message.turn_id
      failed = message.failed ? (message.error?.message ?? 'The answer failed.') : undefined
    } else if (message.role === 'Assistant') {
      const previous = entries.at(-1)
      const answer = previous?.kind === 'answer' ? previous : undefined
      if (answer) entries.pop()
      const parts = [...(answer?.parts ?? []), ...recordedParts(message)]
      entries.push({
        kind: 'answer',
        id: answer?.id ?? idFor('answer'),
        parts,
        state:
          failed !== undefined || message.mark === 'interrupted'
            ? 'failed'
            : message.mark === 'cancelled'
              ? 'stopped'
              : 'done',
        problem:
          failed ??
          (message.mark === 'interrupted' ? 'The daemon stopped before this answer was complete.' : undefined),
        aside:
          message.mark === 'cancelled'
            ? asides['cancelled']
            : message.mark === 'cut'
              ? 'The answer was cut off here.'
              : undefined,
        cost: costs.get(message.turn_id ?? '') ?? costs.get(textOf(parts)),
        turnId: message.turn_id,
        kept: failed !== undefined,
        thinking:
          [answer?.thinking, message.thinking].filter((text) => text).join('\n\n') || thoughts.get(message.turn_id),
      })
    }
  }
  endQuestion()
  return { entries, nextId }
}

/**
 * Turns of which this page knows neither what they cost nor why they failed, the newest first: the messages do not say.
 */
export function unaccounted({ entries }: Transcript): readonly string[] {
  return entries
    .flatMap((entry) =>
      entry.kind === 'answer' && entry.cost === undefined && entry.problem === undefined && entry.turnId !== undefined
        ? [entry.turnId]
        : [],
    )
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
  return transcript.entries.filter(isOpen).reduce((known, answer) => end(known, answer, how), transcript)
}
function end(transcript: Transcript, answer: Answer, how: Pick<Answer, 'state' | 'problem' | 'aside'>): Transcript {
  return replace(transcript, { ...answer, ...how, phase: undefined, parts: answer.parts.map(endCall) })
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
