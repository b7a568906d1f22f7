import { isObject, readJson } from 'svc/sdk'
import type { Block } from '../../sessions/contract.ts'
import type { SourceMessage, Transcript } from '../model.ts'
import { fieldsOf, listOf, textOf, timeOf } from './values.ts'
import type { Fields } from './values.ts'

/** Characters of one text; what comes after them is cut. */
const MAX_TEXT = 200_000
/** Where the texts of a tool and of people come from is not known any more. */
const OUTSIDE = ['ExternalNetwork'] as const
const FROM_PERSON = ['UserInput'] as const

/** A message of any of the systems: a role, and a text or blocks of text, calls and results. */
export interface RawMessage {
  readonly role: string
  readonly content: unknown
  readonly at: string | undefined
  /** Of a result that is a message of its own. */
  readonly callId?: string | undefined
  readonly tool?: string | undefined
  readonly failed?: boolean | undefined
}

/**
 * Messages as they are stored here. Calls without a result, results without a call, pictures and thoughts are left out;
 * a message without a time has that of the one before, or `createdAt`, and a millisecond.
 */
export function toTranscript(raw: readonly RawMessage[], createdAt: string, max: number): Transcript {
  const results = new Set(raw.flatMap((message) => resultIds(message)))
  const open = new Map<string, string>()
  const messages: SourceMessage[] = []
  const warnings: string[] = []
  let last = Date.parse(createdAt) - 1
  let dropped = 0
  for (const message of raw) {
    const given = message.at === undefined ? Number.NaN : Date.parse(message.at)
    last = given > last ? given : last + 1
    const blocks = blocksOf(message, results, open)
    dropped += blocks.dropped
    for (const part of splitResults(message.role, blocks.kept)) {
      // A conversation begins with a person.
      if (messages.length > 0 || part.role === 'user') messages.push({ ...part, at: new Date(last).toISOString() })
    }
  }
  if (dropped > 0) warnings.push(`${dropped} pictures, thoughts and calls without a result are left out`)
  if (messages.length <= max) return { createdAt, messages, warnings }
  const newest = messages.slice(-max)
  const begin = newest.findIndex(({ role }) => role === 'user')
  const kept = begin < 0 ? [] : newest.slice(begin)
  warnings.push(`the oldest ${messages.length - kept.length} of ${messages.length} messages are left out`)
  return { createdAt, messages: kept, warnings }
}

/** Results have a message of their own. */
function splitResults(role: string, blocks: readonly Block[]): readonly Omit<SourceMessage, 'at'>[] {
  const results = blocks.filter(({ type }) => type === 'result')
  const others = blocks.filter(({ type }) => type !== 'result')
  const name = roleOf(role)
  return [
    ...(results.length > 0 ? [{ role: 'tool' as const, blocks: results }] : []),
    ...(others.length > 0 && name !== undefined ? [{ role: name, blocks: others }] : []),
  ]
}
function roleOf(role: string): 'user' | 'assistant' | undefined {
  const name = role.toLowerCase()
  if (name === 'user' || name === 'human') return 'user'
  return name === 'assistant' || name === 'model' ? 'assistant' : undefined
}

function resultIds({ content, role, callId }: RawMessage): readonly string[] {
  if (isResultRole(role) && callId !== undefined) return [callId]
  return listOf(content).flatMap((block) => {
    const fields = fieldsOf(block)
    return isResult(fields) ? (textOf(fields['tool_use_id'] ?? fields['toolCallId']) ?? []) : []
  })
}
const isResultRole = (role: string): boolean => /^tool_?result$|^tool$/i.test(role)
const isResult = ({ type }: Fields): boolean => type === 'tool_result' || type === 'toolResult' || type === 'ToolResult'
const isCall = ({ type }: Fields): boolean => type === 'tool_use' || type === 'toolCall' || type === 'ToolUse'
const isText = ({ type }: Fields): boolean => type === 'text' || type === 'Text'

function blocksOf(
  message: RawMessage,
  results: ReadonlySet<string>,
  open: Map<string, string>,
): { readonly kept: readonly Block[]; readonly dropped: number } {
  const { role, content } = message
  const isPerson = /^(user|human)$/i.test(role)
  if (isResultRole(role)) {
    const result = resultBlock(message.callId, message.tool, plainText(content), message.failed === true, open)
    return { kept: result ? [result] : [], dropped: result ? 0 : 1 }
  }
  if (typeof content === 'string') return { kept: textBlocks(content, isPerson), dropped: 0 }
  const kept: Block[] = []
  let dropped = 0
  for (const block of listOf(content)) {
    const fields = fieldsOf(block)
    const found = isText(fields)
      ? textBlocks(textOf(fields['text']) ?? '', isPerson)
      : isCall(fields)
        ? callBlocks(fields, results, open)
        : isResult(fields)
          ? [resultOf(fields, open)].flatMap((one) => one ?? [])
          : []
    kept.push(...found)
    if (found.length === 0) dropped++
  }
  return { kept, dropped }
}

function textBlocks(text: string, isPerson: boolean): readonly Block[] {
  if (text.trim() === '') return []
  const cut = text.toWellFormed().replaceAll('\0', '').slice(0, MAX_TEXT)
  return [isPerson ? { type: 'text', text: cut, labels: FROM_PERSON } : { type: 'text', text: cut }]
}
function callBlocks(fields: Fields, results: ReadonlySet<string>, open: Map<string, string>): readonly Block[] {
  const id = textOf(fields['id'])
  const tool = textOf(fields['name'])
  if (id === undefined || tool === undefined || !results.has(id) || open.has(id)) return []
  open.set(id, tool)
  const args = fields['input'] ?? fields['arguments']
  return [{ type: 'call', id, tool, args: isObject(args) ? args : {} }]
}
const resultOf = (fields: Fields, open: Map<string, string>): Block | undefined =>
  resultBlock(
    textOf(fields['tool_use_id'] ?? fields['toolCallId']),
    textOf(fields['tool_name'] ?? fields['toolName']),
    plainText(fields['content']),
    fields['is_error'] === true || fields['isError'] === true,
    open,
  )
function resultBlock(
  callId: string | undefined,
  name: string | undefined,
  text: string,
  failed: boolean,
  open: Map<string, string>,
): Block | undefined {
  const tool = callId === undefined ? undefined : (open.get(callId) ?? undefined)
  if (callId === undefined || tool === undefined) return undefined
  open.delete(callId)
  const cut = text.toWellFormed().replaceAll('\0', '').slice(0, MAX_TEXT)
  return { type: 'result', callId, tool: name ?? tool, text: cut, failed, labels: OUTSIDE }
}
function plainText(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .flatMap((block) => textOf(fieldsOf(block)['text']) ?? [])
    .join('\n')
}

/** Lines of a transcript, a JSON value each; those that are none are counted. */
export function readLines(text: string): { readonly values: readonly Fields[]; readonly broken: number } {
  const values: Fields[] = []
  let broken = 0
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    try {
      const value: unknown = readJson(line)
      if (isObject(value)) values.push(value)
      else broken++
    } catch {
      broken++
    }
  }
  return { values, broken }
}

/**
 * A transcript of OpenClaw: events of the kinds `session`, `message` and others, each with its time. Read in November
 * 2026: docs.openclaw.ai/reference/session-management-compaction. Older ones have a message a line, without the event
 * around it. Of a conversation that was forked the branch of the last event is read.
 */
export function readEvents(events: readonly Fields[], fallback: string, max: number): Transcript {
  const header = events.find(({ type }) => type === 'session')
  const createdAt = timeOf(header?.['timestamp']) ?? timeOf(events[0]?.['timestamp']) ?? fallback
  const branch = lastBranch(events)
  const raw = branch.flatMap((event): readonly RawMessage[] => {
    const isEvent = event['type'] === 'message'
    const message = isEvent ? fieldsOf(event['message']) : event
    const role = textOf(message['role'])
    if (role === undefined) return []
    const at = timeOf(message['timestamp']) ?? timeOf(event['timestamp'])
    const callId = textOf(message['toolCallId'] ?? message['tool_call_id'])
    const tool = textOf(message['toolName'] ?? message['name'])
    return [{ role, content: message['content'], at, callId, tool, failed: message['isError'] === true }]
  })
  return toTranscript(raw, createdAt, max)
}

function lastBranch(events: readonly Fields[]): readonly Fields[] {
  const byId = new Map(events.flatMap((event) => (typeof event['id'] === 'string' ? [[event['id'], event]] : [])))
  const last = events.at(-1)
  if (last === undefined || !events.some(({ parentId }) => typeof parentId === 'string')) return events
  const branch: Fields[] = []
  const seen = new Set<Fields>()
  for (let event: Fields | undefined = last; event && !seen.has(event);) {
    seen.add(event)
    branch.push(event)
    const parent: unknown = event['parentId']
    event = typeof parent === 'string' ? byId.get(parent) : undefined
  }
  return branch.toReversed()
}
