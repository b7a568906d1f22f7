import { findNearest, matchesWildcard, suggest } from 'svc/internal'
import { isObject, Refusal } from 'svc/sdk'
import type { TriggerEvent } from './event.ts'

/** The fields that the object of a pattern may have; none is required. */
const FIELDS = {
  lifecycle: [],
  agent_spawned: ['name_pattern'],
  agent_terminated: [],
  system: [],
  system_keyword: ['keyword'],
  memory_update: [],
  memory_key_pattern: ['key_pattern'],
  content_match: ['substring'],
  task_posted: ['assignee_match'],
  task_claimed: ['creator_match'],
  all: [],
} as const
export type PatternKind = keyof typeof FIELDS
export const PATTERN_KINDS = Object.keys(FIELDS) as readonly PatternKind[]
/** Those that make no sense without their field. */
const REQUIRED: ReadonlySet<PatternKind> = new Set(['system_keyword', 'memory_key_pattern', 'content_match'])
const MAX_CHARS = 256

export interface Pattern {
  readonly kind: PatternKind
  /** The value of its field; what matches anything when absent. */
  readonly value: string | undefined
}

/** From `"lifecycle"` or `{lifecycle: {}}`. Throws `invalid_request` that says what is wrong. */
export function parsePattern(given: unknown): Pattern {
  if (typeof given === 'string') return toPattern(given, {})
  const entries = isObject(given) ? Object.entries(given) : []
  const [entry] = entries
  if (!entry || entries.length !== 1)
    throw invalid(`expected one of ${PATTERN_KINDS.join(', ')}, such as {"agent_spawned": {"name_pattern": "scout-*"}}`)
  return toPattern(entry[0], entry[1] ?? {})
}
function toPattern(name: string, given: unknown): Pattern {
  if (!isKind(name)) {
    const hint = suggest(findNearest(name, PATTERN_KINDS)) || `; there are ${PATTERN_KINDS.join(', ')}`
    throw invalid(`there is no pattern "${name}"${hint}`)
  }
  if (!isObject(given)) throw invalid(`expected an object under ${name}`)
  const [field] = FIELDS[name] as readonly (string | undefined)[]
  const unknown = Object.keys(given).find((key) => key !== field)
  if (unknown !== undefined)
    throw invalid(`${name} has no field "${unknown}"${field === undefined ? '' : `; did you mean "${field}"?`}`)
  return { kind: name, value: valueOf(name, field, given) }
}
function valueOf(name: PatternKind, field: string | undefined, given: Record<string, unknown>): string | undefined {
  if (field === undefined) return undefined
  const value = given[field]
  if (value === undefined || value === null) {
    if (REQUIRED.has(name)) throw invalid(`${name} needs ${field}`)
    return undefined
  }
  if (typeof value !== 'string' || value.trim() === '') throw invalid(`${name}.${field}: expected a text`)
  if (value.length > MAX_CHARS) throw invalid(`${name}.${field}: at most ${MAX_CHARS} characters`)
  return value
}
const isKind = (name: string): name is PatternKind => Object.hasOwn(FIELDS, name)
const invalid = (problem: string): Refusal => new Refusal('invalid_request', `pattern: ${problem}`)

/** As the interface shows it: `{lifecycle: {}}`. */
export function renderPattern({ kind, value }: Pattern): Readonly<Record<string, Readonly<Record<string, string>>>> {
  const [field] = FIELDS[kind] as readonly (string | undefined)[]
  return { [kind]: field === undefined || value === undefined ? {} : { [field]: value } }
}

/** What a pattern may have to look up. */
export interface MatchContext {
  /** The agent that would be asked. */
  readonly receiver: { readonly id: string; readonly name: string }
  /** The event as it would be told. */
  readonly text: () => Promise<string>
  /** The task of the event; `undefined` when it is gone. */
  readonly task: () => Promise<TaskFacts | undefined>
}
export interface TaskFacts {
  /** Id and name; `undefined` for a task that anybody may claim. */
  readonly assignee: AgentRef | undefined
  readonly creator: AgentRef | undefined
}
export interface AgentRef {
  readonly id: string
  readonly name: string
}

type Test = (value: string | undefined, event: TriggerEvent, context: MatchContext) => boolean | Promise<boolean>

const TESTS: Readonly<Record<PatternKind, Test>> = {
  lifecycle: (_, event) => event.class === 'lifecycle',
  agent_spawned: (name = '*', event) => event.kind === 'agent_spawned' && matchesWildcard(name, event.agentName ?? ''),
  agent_terminated: (_, { kind }) => kind === 'agent_terminated' || kind === 'agent_crashed',
  system: (_, event) => event.class === 'system',
  system_keyword: (keyword = '', event) => event.class === 'system' && contains(event.sentence, keyword),
  memory_update: (_, event) => event.class === 'memory',
  memory_key_pattern: (key = '*', event) =>
    event.memoryKey !== undefined && event.class === 'memory' && matchesWildcard(key, event.memoryKey),
  content_match: async (substring = '', _, { text }) => contains(await text(), substring),
  task_posted: async (match, event, context) => event.kind === 'task_posted' && matchesTask(match, 'assignee', context),
  task_claimed: async (match, event, context) =>
    event.kind === 'task_claimed' && matchesTask(match, 'creator', context),
  all: () => true,
}
const contains = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase())

async function matchesTask(
  match: string | undefined,
  who: 'assignee' | 'creator',
  { receiver, task }: MatchContext,
): Promise<boolean> {
  if (match === undefined || match === '*') return true
  const facts = await task()
  if (!facts) return false
  const agent = facts[who]
  if (match === 'unassigned') return agent === undefined
  if (match === 'self') return agent?.id === receiver.id
  return agent !== undefined && (agent.id === match || matchesWildcard(match, agent.name))
}

/** Whether a pattern matches an event. */
export function matches(
  { kind, value }: Pattern,
  event: TriggerEvent,
  context: MatchContext,
): boolean | Promise<boolean> {
  return TESTS[kind](value, event, context)
}

/** What agents may hear of others: that they come and go, what they publish, and that the daemon runs. */
const PUBLIC_KINDS: ReadonlySet<string> = new Set(['daemon_started', 'daemon_stopped'])
/**
 * Whether a trigger that an agent made may fire for the event: it must not listen to other agents. Of tasks it hears
 * those that it could claim and those that it posted.
 */
export async function mayHear(
  agentId: string,
  event: TriggerEvent,
  task: () => Promise<TaskFacts | undefined>,
): Promise<boolean> {
  if (event.class === 'task') {
    const facts = await task()
    return facts !== undefined && (facts.creator?.id === agentId || (facts.assignee?.id ?? agentId) === agentId)
  }
  if (event.agentId === agentId) return true
  if (event.class === 'lifecycle') return event.kind !== 'agent_crashed'
  return event.class === 'custom' || PUBLIC_KINDS.has(event.kind)
}
