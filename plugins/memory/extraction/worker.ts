import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Job, JobOutcome } from '../../queue/contract.ts'
import type { Screening } from '../../screening/contract.ts'
import type { Label, Message, Sessions } from '../../sessions/contract.ts'
import type { Memories, Memory, MemoryReader, MemorySource, NewMemory } from '../contract.ts'
import { mayUseOwn } from '../entries/access.ts'
import { aboutTag, compare, isOutside } from './compare.ts'
import { isNamed } from './fact.ts'
import type { Fact } from './fact.ts'
import { extractByModel, extractionModel, MAX_FACTS } from './model.ts'
import type { ModelDeps } from './model.ts'
import { ownWords } from './own-words.ts'
import { extractByRules } from './rules.ts'
import { proactiveOf } from './settings.ts'
import type { ProactiveSettings } from './settings.ts'
import type { Graph } from '../graph/service.ts'

export interface WorkerDeps extends ModelDeps {
  readonly agents: Pick<Agents, 'find'>
  readonly sessions: Pick<Sessions, 'turn'>
  readonly memories: Memories
  readonly graph: Pick<Graph, 'addTriples'>
  readonly screening: () => Screening | undefined
  readonly settings: ProactiveSettings & { readonly duplicate_threshold: number }
  readonly now: () => number
  readonly count: (outcome: Outcome, by?: number) => void
}
export type Outcome =
  | 'added'
  | 'replaced'
  | 'known'
  | 'outdated'
  | 'nothing'
  | 'invalid'
  | 'graph_full'
  | 'suspicious'
  | 'unsure'
  | 'over_budget'
  | 'given_up'

export const Payload = v.object({
  turnId: v.string(),
  sessionId: v.string(),
  agentId: v.string(),
  userId: v.optional(v.string()),
  entryPoint: v.string(),
})
const HOUR_MS = 3_600_000
const MIN_PAUSE_SECS = 60
/** Nobody wants these to be read again. */
const SECRET =
  /\b(?:pass(?:word|phrase|code)|pin(?: code| number)?|api[ _-]?key|secret key|private key|access token|cvv|passwort|seed phrase)\b/i
/** In a group the channels begin each message with the name of its sender, and indent the lines after the first. */
const SENDER = /^\[([^\n:[\]]{1,200})\]: /
const INDENT = /\n {2}/g

interface Said {
  readonly agent: Agent
  readonly turn: v.InferOutput<typeof Payload>
  readonly message: Pick<Message, 'id' | 'createdAt'>
  readonly text: string
  readonly labels: readonly Label[]
  readonly person: string | undefined
  /** Where it is known from; absent: the message of the turn. */
  readonly source?: MemorySource
}

/** Remembers what a person said in one turn. Done again, it adds nothing. */
export async function memorize(deps: WorkerDeps, job: Job): Promise<JobOutcome> {
  const turn = v.parse(Payload, job.payload)
  const agent = await deps.agents.find(turn.agentId)
  if (!agent || !proactiveOf(agent, deps.settings).memorizes || !mayUseOwn(agent, 'memory_write')) return DONE
  const said = await read(deps, agent, turn)
  if (said === 'suspicious') deps.count('suspicious')
  else if (said === undefined) deps.count('nothing')
  else {
    try {
      await remember(deps, said, job.signal)
    } catch (error) {
      // Only the budget refuses with this code: a call that is over a limit may be made when the limit is new.
      if (!(error instanceof Refusal) || error.code !== 'rate_limit') throw error
      if (deps.now() - job.createdAt > deps.settings.extraction_give_up_hours * HOUR_MS) {
        deps.count('given_up')
        return DONE
      }
      deps.count('over_budget')
      return { outcome: 'postponed', afterMs: Math.max(error.retryAfterSecs ?? 0, MIN_PAUSE_SECS) * 1000 }
    }
  }
  return DONE
}
const DONE: JobOutcome = { outcome: 'done' }

/** What a person said elsewhere, as a program with the API key tells it. */
export interface ReportedMessage {
  readonly agent: Agent
  readonly userId: string | undefined
  readonly text: string
  /** Of the request and the message: the same id again adds nothing. */
  readonly id: string
  /** Who tells it. */
  readonly by: string
}
/** Remembers what a person said elsewhere. Returns what there is of it now. Throws what the budget and the model throw. */
export async function memorizeReported(
  deps: WorkerDeps,
  { agent, userId, text: whole, id, by }: ReportedMessage,
  signal: AbortSignal,
): Promise<readonly Memory[]> {
  const text = ownWords(whole).slice(0, deps.settings.extraction_chars)
  const level = text === '' ? undefined : (await deps.screening()?.screen(text))?.level
  if (text === '' || level === 'critical') {
    deps.count(text === '' ? 'nothing' : 'suspicious')
    return []
  }
  const turn = { turnId: id, sessionId: '', agentId: agent.id, userId, entryPoint: 'api' }
  const message = { id, createdAt: new Date(deps.now()).toISOString() }
  const source = { kind: 'person', person: by, labels: [] } as const
  return remember(deps, { agent, turn, message, text, labels: [], person: undefined, source }, signal)
}

async function read(
  { sessions, settings, screening }: WorkerDeps,
  agent: Agent,
  turn: Said['turn'],
): Promise<Said | 'suspicious' | undefined> {
  const messages = await sessions.turn(turn.sessionId, turn.turnId)
  const message = messages.find(({ role }) => role === 'user')
  if (!message || message.failure) return undefined
  const blocks = message.blocks.flatMap((block) => (block.type === 'text' ? [block] : []))
  const whole = blocks.map(({ text }) => text).join('\n')
  const labels = [...new Set(blocks.flatMap((block) => block.labels ?? []))].filter((label) => label !== 'UserInput')
  const sender = turn.entryPoint === 'channel' ? SENDER.exec(whole)?.[1] : undefined
  const spoken = sender === undefined ? whole : whole.replace(SENDER, '').replaceAll(INDENT, '\n')
  const text = ownWords(spoken).slice(0, settings.extraction_chars)
  if (text === '' || labels.includes('Secret')) return undefined
  // A name is stored with what its bearer says.
  const level = (await screening()?.screen(sender === undefined ? text : `${sender}: ${text}`))?.level
  if (level === 'critical' || (level === 'warning' && isOutside(labels))) return 'suspicious'
  return { agent, turn, message, text, labels, person: sender }
}

async function remember(deps: WorkerDeps, said: Said, signal: AbortSignal): Promise<readonly Memory[]> {
  const { memories, settings, count } = deps
  const facts = latest((await extract(deps, said, signal)).filter(({ content }) => !SECRET.test(content)))
  const sure = facts.filter(({ confidence }) => confidence >= settings.extraction_threshold)
  if (facts.length > sure.length) count('unsure', facts.length - sure.length)
  if (facts.length === 0) count('nothing')
  const added: { readonly fact: Fact; readonly memory: NewMemory }[] = []
  const replaced = new Set<string>()
  const outcomes: Outcome[] = []
  for (const [index, stated] of sure.entries()) {
    const fact = ofPerson(stated, said.person)
    const draft = toMemory(said, fact, index)
    const deciding = { memories, threshold: settings.duplicate_threshold }
    const compared = await compare(deciding, fact, draft, readerOf(said), said.message)
    if (compared.outcome === 'outdated') {
      count('outdated')
      continue
    }
    if (compared.outcome === 'known') {
      // A run that was cut off may have stored the memory only.
      await relate(deps, draft, compared.id, fact)
      count('known')
      continue
    }
    outcomes.push(compared.outcome === 'replaces' ? 'replaced' : 'added')
    const supersedes = compared.outcome === 'replaces' && !replaced.has(compared.id) ? compared.id : undefined
    if (supersedes !== undefined) replaced.add(supersedes)
    added.push({ fact, memory: supersedes === undefined ? draft : { ...draft, supersedes } })
  }
  // A model may name the facts in another order, or more of them, when it is asked again.
  const keys = Array.from({ length: Math.max(MAX_FACTS, sure.length) }, (_, index) => keyOf(said, index))
  const stored = await memories.add(added.map(({ memory }) => ({ ...memory, unlessDeleted: keys })))
  // Under the key of a fact there may be another one, of a run before.
  const byKey = new Map(stored.map((memory) => [memory.idempotencyKey, memory]))
  for (const [index, { fact, memory: draft }] of added.entries()) {
    const memory = byKey.get(draft.idempotencyKey)
    if (memory?.content !== draft.content) continue
    // Counted once it is on disk.
    const outcome = outcomes[index]
    if (outcome) count(outcome)
    await relate(deps, memory, memory.id, fact)
  }
  return stored
}

async function relate(
  { graph, count }: WorkerDeps,
  { agentId, userId, source }: NewMemory,
  memoryId: string,
  { relations = [] }: Fact,
): Promise<void> {
  const usable = relations.filter(isNamed)
  if (relations.length > usable.length) count('invalid', relations.length - usable.length)
  if (usable.length === 0) return
  try {
    await graph.addTriples({ agentId, userId, memoryId, labels: source.labels }, usable)
  } catch (error) {
    // The graph is full. The fact is remembered, and reading the message again would change nothing.
    if (!(error instanceof Refusal) || error.code !== 'invalid_request') throw error
    count('graph_full')
  }
}

/** Of what only one can hold the last word of a message counts. */
function latest(facts: readonly Fact[]): readonly Fact[] {
  return facts.filter(
    ({ subject }, index) =>
      subject === undefined || facts.findLastIndex((other) => other.subject === subject) === index,
  )
}

async function extract(deps: WorkerDeps, said: Said, signal: AbortSignal): Promise<readonly Fact[]> {
  const { agent, turn, text, person } = said
  const { settings, inference, memories, count, screening } = deps
  const model = await extractionModel(inference, agent, proactiveOf(agent, settings).model)
  if (model.provider === 'builtin') return extractByRules(text, person ?? 'the user')
  const found = await memories.search({ text: text.slice(0, 1_000), limit: 10, reader: readerOf(said), signal })
  const known = found.map(({ memory }) => ({ id: memory.id, content: memory.content }))
  const call = {
    agent,
    turnId: turn.turnId,
    sessionId: turn.sessionId,
    model,
    maxTokens: settings.extraction_tokens,
    signal,
  }
  const { facts, invalid } = await extractByModel(deps, call, text, known)
  if (invalid > 0) count('invalid', invalid)
  const kept: Fact[] = []
  for (const fact of facts) {
    const level = (await screening()?.screen(fact.content))?.level
    if (level === 'critical' || level === 'warning') count('suspicious')
    else kept.push(fact)
  }
  return kept
}

/** In a group several people speak of themselves. */
function ofPerson(fact: Fact, person: string | undefined): Fact {
  if (person === undefined) return fact
  const subject = fact.subject === undefined ? undefined : `${fact.subject} of ${person.toLowerCase()}`
  return { ...fact, content: `${person}: ${fact.content}`, subject }
}

function readerOf({ turn }: Said): MemoryReader {
  return { kind: 'agent', agentId: turn.agentId, userId: turn.userId, sessionId: turn.sessionId }
}

function toMemory({ turn, message, labels, person, source }: Said, fact: Fact, index: number): NewMemory {
  const { agentId, userId, turnId, sessionId } = turn
  const tags = fact.subject === undefined ? fact.tags : [...fact.tags, aboutTag(fact.subject)]
  const isOwn = turn.entryPoint !== 'channel'
  return {
    agentId,
    userId,
    level: 'user',
    content: fact.content,
    category: fact.category,
    confidence: fact.confidence,
    tags: [...new Set(tags)],
    source: source ?? { kind: isOwn ? 'message' : 'person', turnId, messageId: message.id, sessionId, person, labels },
    idempotencyKey: keyOf({ turn }, index),
  }
}
const keyOf = ({ turn }: Pick<Said, 'turn'>, index: number): string => `${turn.turnId}:${index}`
