import { hash } from 'node:crypto'
import type { MemoryFilter, MemoryLevel } from '../contract.ts'
import type { ReadScope } from '../entries/access.ts'

/** What the marks of a memory are made of. Empty texts stand for nobody and nothing. */
export interface Marked {
  readonly agentId: string
  readonly userId: string
  readonly sessionId: string
  readonly level: string
  readonly category: string | undefined
  readonly tags: readonly string[]
}
/** Marks that narrow a search: a memory has one of `anyOf`, where there are any, and all of `allOf`. */
export interface Narrowing {
  readonly anyOf: readonly string[]
  readonly allOf: readonly string[]
}

/** A word of letters and digits has no `_` in front, so that no text of a memory or a question can be taken for a mark. */
const mark = (...parts: readonly string[]): string => `_${hash('sha256', JSON.stringify(parts)).slice(0, 16)}`

const agentMark = (agentId: string): string => mark('agent', agentId)
export const userMark = (userId: string): string => mark('user', userId)
export const ownMark = (agentId: string, level: string, userId: string, sessionId: string): string =>
  mark('own', agentId, level, userId, level === 'session' ? sessionId : '')
/** The first 32 bits of a mark. */
export const numberOfMark = (mark: string): number => Number.parseInt(mark.slice(1, 9), 16)
const levelMark = (level: string): string => mark('level', level)
const categoryMark = (category: string): string => mark('category', category)
const tagMark = (tag: string): string => mark('tag', tag)

/** What is stored beside the words of a memory. */
export function marksOf({ agentId, userId, sessionId, level, category, tags }: Marked): readonly string[] {
  return [
    agentMark(agentId),
    userMark(userId),
    ownMark(agentId, level, userId, sessionId),
    levelMark(level),
    ...(category === undefined ? [] : [categoryMark(category)]),
    ...tags.map(tagMark),
  ]
}

/**
 * Marks of what a scope may see: what `visibleTo` says of rows, which decides in the end. `undefined`: nothing.
 * `agentIds`: those it is asked of, or all.
 */
export function narrowingOf(
  scope: ReadScope,
  agentIds: readonly string[],
  isOneAgent: boolean,
  { userId, level, category, tags = [] }: MemoryFilter,
): Narrowing | undefined {
  if (agentIds.length === 0) return undefined
  const allOf = [
    ...(userId === undefined ? [] : [userMark(userId)]),
    ...(level === undefined ? [] : [levelMark(level)]),
    ...(category === undefined || category === '' ? [] : [categoryMark(category)]),
    ...tags.map(tagMark),
    ...(scope.isPerson ? [userMark(scope.userId)] : []),
  ]
  if (scope.all || scope.isPerson) return { anyOf: isOneAgent ? agentIds.map(agentMark) : [], allOf }
  const anyOf = agentIds.flatMap((agentId) => ownMarksSeen(scope, agentId))
  return anyOf.length === 0 ? undefined : { anyOf, allOf }
}
/** Of one agent what another, or itself, may see in a turn. */
export function ownMarksSeen(
  { agentId: own, userId, sessionId, shared }: ReadScope,
  agentId: string,
): readonly string[] {
  const isOwn = agentId === own
  const sees = (level: MemoryLevel): boolean => isOwn || shared.has(`${agentId} ${level}`)
  const marks = new Set<string>()
  if (sees('agent')) for (const user of ['', userId]) marks.add(ownMark(agentId, 'agent', user, ''))
  if (sees('user')) marks.add(ownMark(agentId, 'user', userId, ''))
  if (isOwn && sessionId !== '') marks.add(ownMark(agentId, 'session', userId, sessionId))
  return [...marks]
}

/** Marks of what is kept for the same person at the same level. */
export function narrowingLike(memory: Pick<Marked, 'agentId' | 'userId' | 'sessionId' | 'level'>): Narrowing {
  const { agentId, level, userId, sessionId } = memory
  return { anyOf: [ownMark(agentId, level, userId, sessionId)], allOf: [] }
}
