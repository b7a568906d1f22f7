import * as v from 'valibot'
import { readOwnJson } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { FoundRow, Patterns, Place, SearchStore } from './store.ts'

/** Messages of one statement: others have their turn between two. */
const PAGE = 2_000
const MAX_WORDS = 16
const SNIPPET_CHARS = 160
/** After every id of a turn, which are hexadecimal. */
const LAST: Place = { turn_id: 'zzzz', seq: 0 }
const FIRST: Place = { turn_id: '', seq: 0 }

export interface FoundMessage {
  readonly sessionId: string
  readonly agentId: string
  readonly label: string | null
  readonly messageId: string
  readonly role: 'user' | 'assistant'
  /** ISO 8601 UTC: when it was said, also in a conversation that came from another system. */
  readonly createdAt: string
  /** The text around the first word. */
  readonly snippet: string
}
export interface SearchAnswer {
  /** Newest first. */
  readonly found: readonly FoundMessage[]
  /** Whether all messages were looked at. */
  readonly isComplete: boolean
}

/**
 * The newest messages of persons and agents that have all words, in capital letters or not. Throws `invalid_request` for
 * a text without words.
 */
export async function searchMessages(
  store: SearchStore,
  {
    text,
    agentId = '',
    limit,
    maxMessages,
    page = PAGE,
    signal,
  }: {
    readonly text: string
    readonly agentId?: string | undefined
    readonly limit: number
    /** Of all of them: a search ends there, and says so. */
    readonly maxMessages: number
    readonly page?: number
    /** Of who waits for the answer: the search ends with it. */
    readonly signal: AbortSignal
  },
): Promise<SearchAnswer> {
  const words = [...new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu))].slice(0, MAX_WORDS)
  if (words.length === 0) throw new Refusal('invalid_request', 'q: has no word to look for')
  const patterns = patternsOf(words)
  let found: FoundMessage[] = []
  let before: Place | undefined = LAST
  for (let looked = 0; before && looked < maxMessages; looked += page) {
    signal.throwIfAborted()
    const end: Place | undefined = await store.endOfPage(before, page)
    const rows = await store.matches(before, end ?? FIRST, agentId, patterns)
    found = [...found, ...rows.flatMap((row) => toFound(row, words))]
      .toSorted((one, other) => (one.createdAt < other.createdAt ? 1 : -1))
      .slice(0, limit)
    before = end
  }
  return { found, isComplete: before === undefined }
}

/** Databases fold the letters from A to Z alike; the others are compared here. */
function patternsOf(words: readonly string[]): Patterns {
  const parts = words.flatMap(
    (word) => (word.match(/[a-z\d]+/g) ?? []).toSorted((one, other) => other.length - one.length)[0] ?? [],
  )
  const [one = '', two = '', three = '', four = ''] = parts.toSorted((a, b) => b.length - a.length)
  return [`%${one}%`, `%${two}%`, `%${three}%`, `%${four}%`]
}

const Texts = v.array(v.looseObject({ type: v.string(), text: v.optional(v.unknown()) }))
function toFound(row: FoundRow, words: readonly string[]): readonly FoundMessage[] {
  const blocks = v.parse(Texts, readOwnJson(row.blocks))
  const text = blocks.flatMap((block) => (block.type === 'text' ? [String(block.text)] : [])).join('\n')
  const folded = text.toLowerCase()
  if (!words.every((word) => folded.includes(word))) return []
  const { session_id: sessionId, agent_id: agentId, label, id: messageId, created_at: createdAt } = row
  const role = row.role === 'user' ? ('user' as const) : ('assistant' as const)
  return [
    { sessionId, agentId, label, messageId, role, createdAt, snippet: around(text, folded.indexOf(words[0] ?? '')) },
  ]
}
function around(text: string, at: number): string {
  const begin = Math.max(0, at - SNIPPET_CHARS / 4)
  const cut = text
    .slice(begin, begin + SNIPPET_CHARS)
    .replaceAll(/\s+/g, ' ')
    .trim()
  return `${begin > 0 ? '…' : ''}${cut}${begin + SNIPPET_CHARS < text.length ? '…' : ''}`.toWellFormed()
}
