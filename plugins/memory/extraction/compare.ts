import type { FoundMemory, Memories, Memory, MemoryReader, NewMemory } from '../contract.ts'
import type { Message } from '../../sessions/contract.ts'
import type { Fact } from './fact.ts'

/** What becomes of a fact: it is new, known already, takes the place of a memory, or was replaced before it was read. */
export type Comparison =
  | { readonly outcome: 'new' | 'outdated' }
  | { readonly outcome: 'known' | 'replaces'; readonly id: string }

export interface CompareDeps {
  readonly memories: Pick<Memories, 'list' | 'similar'>
  /** From this similarity on two memories say the same. */
  readonly threshold: number
}
/** From this similarity on a correction is about the memory. Below it vectors of models put what shares only a person. */
const CORRECTION_SIMILARITY = 0.5
const NEGATION = /\b(?:not|no longer|never|any ?more|stopped|quit|cannot|without)\b|n['’]t\b/i

/** The tag of what only one memory can hold. */
export const aboutTag = (subject: string): string => `about:${subject}`

/**
 * Compares a fact with what is known for the same person (API facts 2.6). Turns are not always read in their order: one
 * waits for its budget or is tried again while a later one is read, so the time of the message decides what is newer.
 */
export async function compare(
  { memories, threshold }: CompareDeps,
  fact: Fact,
  draft: NewMemory,
  reader: MemoryReader,
  message: Pick<Message, 'id' | 'createdAt'>,
): Promise<Comparison> {
  const { agentId, userId, level } = draft
  const isSamePerson = (memory: Memory): boolean =>
    memory.agentId === agentId && memory.level === level && (memory.userId ?? '') === (userId ?? '')
  const mayReplace = (memory: Memory): boolean => isSamePerson(memory) && !isWeaker(draft, memory)
  const isOutdated = (memory: Memory): boolean =>
    isLater(memory, message) && !(isOutside(memory.source.labels) && !isOutside(draft.source.labels))
  const against = (memory: Memory): Comparison =>
    isOutdated(memory) ? { outcome: 'outdated' } : mayReplace(memory) ? replaces(memory) : { outcome: 'new' }
  const similar = (await memories.similar(draft, 5)).filter(({ memory }) => isSamePerson(memory))
  const same = similar.find(({ memory }) => plain(memory.content) === plain(draft.content))
  if (same) return { outcome: 'known', id: same.memory.id }
  if (fact.subject !== undefined) {
    const filter = { reader, agentId, level, tags: [aboutTag(fact.subject)], limit: 5, offset: 0 }
    const about = (await memories.list(filter)).memories.filter(isSamePerson)
    const sameTrust = (memory: Memory): boolean => isOutside(memory.source.labels) === isOutside(draft.source.labels)
    const found = about.find(isOutdated) ?? about.find(sameTrust) ?? about.find(mayReplace)
    if (found)
      return plain(found.content) === plain(draft.content) ? { outcome: 'known', id: found.id } : against(found)
  }
  const named = fact.replaces !== undefined && similar.find(({ memory }) => memory.id === fact.replaces)
  if (named && mayReplace(named.memory)) return against(named.memory)
  const nearest: FoundMemory | undefined = similar[0]
  if (!nearest) return { outcome: 'new' }
  if (nearest.score >= threshold) {
    const { content } = nearest.memory
    const isOther = saysOther(content, draft.content)
    const tellsMore = plain(draft.content).includes(plain(content))
    if (!isOther && !tellsMore && !fact.corrects) return { outcome: 'known', id: nearest.memory.id }
    return against(nearest.memory)
  }
  if (fact.corrects && nearest.score >= CORRECTION_SIMILARITY && mayReplace(nearest.memory))
    return against(nearest.memory)
  return { outcome: 'new' }
}

const replaces = ({ id }: Memory): Comparison => ({ outcome: 'replaces', id })
/** Whether it was said, or changed by somebody, after the message. Ids sort in the order they were made. */
function isLater({ source, updatedAt }: Memory, message: Pick<Message, 'id' | 'createdAt'>): boolean {
  return source.messageId === undefined ? updatedAt > message.createdAt : source.messageId > message.id
}
/** Text from outside never takes the place of what somebody said. */
function isWeaker(draft: NewMemory, memory: Memory): boolean {
  return isOutside(draft.source.labels) && !isOutside(memory.source.labels)
}
export const isOutside = (labels: readonly string[]): boolean =>
  labels.includes('ExternalNetwork') || labels.includes('UntrustedAgent')
/** Texts that differ in a number or a negation say something else, however similar they are. */
export const saysOther = (one: string, other: string): boolean =>
  numbers(one) !== numbers(other) || NEGATION.test(one) !== NEGATION.test(other)
const plain = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
const numbers = (text: string): string => (text.match(/\d+/g) ?? []).join(' ')
