import type { FoundMemory, Memories, Memory, MemoryReader, NewMemory } from '../contract.ts'
import type { Fact } from './fact.ts'

/** What becomes of a fact: it is new, known already, or takes the place of a memory. */
export type Comparison = { readonly outcome: 'new' } | { readonly outcome: 'known' | 'replaces'; readonly id: string }

export interface CompareDeps {
  readonly memories: Pick<Memories, 'list' | 'similar'>
  /** From this similarity on two memories say the same. */
  readonly threshold: number
}
/** From this similarity on a correction is about the memory. */
const CORRECTION_SIMILARITY = 0.4
const NEGATION = /\b(?:not|no longer|never|any ?more|stopped|quit|cannot|without)\b|n['’]t\b/i

/** The tag of what only one memory can hold. */
export const aboutTag = (subject: string): string => `about:${subject}`

/** Compares a fact with what is known for the same person (API facts 2.6). */
export async function compare(
  { memories, threshold }: CompareDeps,
  fact: Fact,
  draft: NewMemory,
  reader: MemoryReader,
): Promise<Comparison> {
  const { agentId, userId, level } = draft
  const isSamePerson = (memory: Memory): boolean =>
    memory.agentId === agentId && memory.level === level && (memory.userId ?? '') === (userId ?? '')
  const mayReplace = (memory: Memory): boolean => isSamePerson(memory) && !isWeaker(draft, memory)
  const similar = (await memories.similar(draft, 5)).filter(({ memory }) => isSamePerson(memory))
  const same = similar.find(({ memory }) => plain(memory.content) === plain(draft.content))
  if (same) return { outcome: 'known', id: same.memory.id }
  if (fact.subject !== undefined) {
    const filter = { reader, agentId, level, tags: [aboutTag(fact.subject)], limit: 5, offset: 0 }
    const found = (await memories.list(filter)).memories.find(mayReplace)
    if (found)
      return plain(found.content) === plain(draft.content) ? { outcome: 'known', id: found.id } : replaces(found)
  }
  const named = fact.replaces !== undefined && similar.find(({ memory }) => memory.id === fact.replaces)
  if (named && mayReplace(named.memory)) return replaces(named.memory)
  const nearest: FoundMemory | undefined = similar[0]
  if (!nearest) return { outcome: 'new' }
  if (nearest.score >= threshold) {
    const { content } = nearest.memory
    const isOther =
      numbers(content) !== numbers(draft.content) || NEGATION.test(content) !== NEGATION.test(draft.content)
    const tellsMore = plain(draft.content).includes(plain(content))
    if (!isOther && !tellsMore && !fact.corrects) return { outcome: 'known', id: nearest.memory.id }
    return mayReplace(nearest.memory) ? replaces(nearest.memory) : { outcome: 'new' }
  }
  if (fact.corrects && nearest.score >= CORRECTION_SIMILARITY && mayReplace(nearest.memory))
    return replaces(nearest.memory)
  return { outcome: 'new' }
}

const replaces = ({ id }: Memory): Comparison => ({ outcome: 'replaces', id })
/** Text from outside never takes the place of what somebody said. */
function isWeaker(draft: NewMemory, memory: Memory): boolean {
  return isOutside(draft.source.labels) && !isOutside(memory.source.labels)
}
export const isOutside = (labels: readonly string[]): boolean =>
  labels.includes('ExternalNetwork') || labels.includes('UntrustedAgent')
const plain = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
const numbers = (text: string): string => (text.match(/\d+/g) ?? []).join(' ')
