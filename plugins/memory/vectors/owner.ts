import type { MemoryFilter } from '../contract.ts'
import type { ReadScope } from '../entries/access.ts'
import { numberOfMark, ownMark, ownMarksSeen, userMark } from '../words/scopes.ts'
import type { Owner, Wanted } from './signs.ts'

/** Whose a vector is, as its place has it. 0 stands for an empty place, so it is none. */
export function ownerOf(row: {
  readonly agent_id: string
  readonly level: string
  readonly user_id: string
  readonly session_id: string
}): Owner {
  const own = ownNumber(ownMark(row.agent_id, row.level, row.user_id, row.session_id))
  return { own, user: numberOfMark(userMark(row.user_id)) }
}
const ownNumber = (mark: string): number => numberOfMark(mark) || 1

/** Whose vectors a scope has, as far as their places tell. */
export function ownersOf(
  scope: ReadScope,
  agentIds: readonly string[],
  { userId, level, sessionId }: MemoryFilter & { readonly sessionId?: string | undefined },
): Pick<Wanted, 'owns' | 'user'> {
  const user = scope.isPerson ? scope.userId : userId
  const number = user === undefined ? undefined : numberOfMark(userMark(user))
  if (sessionId !== undefined && level !== undefined) {
    const owns = agentIds.map((id) => ownNumber(ownMark(id, level, userId ?? '', sessionId)))
    return { owns: new Set(owns), user: number }
  }
  if (scope.all || scope.isPerson) return { owns: undefined, user: number }
  return { owns: new Set(agentIds.flatMap((id) => ownMarksSeen(scope, id)).map(ownNumber)), user: number }
}
