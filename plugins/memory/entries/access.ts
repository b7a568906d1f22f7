import { matchesWildcard } from 'svc/internal'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { MemoryReader } from '../contract.ts'

/** What a reader may see, as the statements and the index compare it. Empty texts stand for nobody and nothing. */
export interface ReadScope {
  readonly all: boolean
  /** Reads what is kept for `userId`, whatever the agent. */
  readonly isPerson: boolean
  readonly userId: string
  readonly agentId: string
  readonly sessionId: string
  /** `<agent id> <level>` of what other agents share with this one. */
  readonly shared: ReadonlySet<string>
}

/**
 * Levels that one agent may share with another. Decision: it takes the manifests of both. That of the writer has
 * `shared.<level>` in `memory_write`, that of the reader `<name of the writer>.<level>` in `memory_read`; patterns that
 * begin with `self.` mean neither.
 */
const SHAREABLE = ['user', 'agent'] as const

export async function scopeOf(reader: MemoryReader, agents: Agents): Promise<ReadScope> {
  if (reader.kind === 'operator') return EVERYTHING
  if (reader.kind === 'person') return { ...NOTHING, isPerson: true, userId: reader.userId ?? '' }
  const { agentId, userId = '', sessionId = '' } = reader
  const agent = await agents.find(agentId)
  // Its own memories are under the same list: an agent that may read nothing is told nothing.
  if (agent === undefined || !mayUseOwn(agent, 'memory_read')) return NOTHING
  return { ...NOTHING, agentId, userId, sessionId, shared: await sharedWith(agent, agents) }
}

/** Without a guard. */
export const EVERYTHING: ReadScope = {
  all: true,
  isPerson: false,
  userId: '',
  agentId: '',
  sessionId: '',
  shared: new Set(),
}
const NOTHING: ReadScope = { all: false, isPerson: false, userId: '', agentId: '', sessionId: '', shared: new Set() }

/** Whether the manifest lets an agent read or write memories of its own that have no key. */
export function mayUseOwn({ manifest }: Agent, list: 'memory_read' | 'memory_write'): boolean {
  return manifest.capabilities[list].some((pattern) => matchesWildcard(pattern, 'self.memory'))
}

/** Whether the scope has this memory: what `guard` says in SQL. */
export function isVisible(
  { all, isPerson, userId, agentId, sessionId, shared }: ReadScope,
  entry: {
    readonly agentId: string
    readonly userId: string
    readonly sessionId: string
    readonly level: string
  },
): boolean {
  if (all) return true
  if (isPerson) return entry.userId === userId
  const isForReader = entry.userId === userId || (entry.level === 'agent' && entry.userId === '')
  if (!isForReader) return false
  if (entry.agentId !== agentId) return shared.has(`${entry.agentId} ${entry.level}`)
  return entry.level !== 'session' || (entry.sessionId === sessionId && sessionId !== '')
}

async function sharedWith(agent: Agent, agents: Agents): Promise<ReadonlySet<string>> {
  const wanted = agent.manifest.capabilities.memory_read.filter((pattern) => !pattern.startsWith('self.'))
  const shared = new Set<string>()
  if (wanted.length === 0) return shared
  for (const other of await agents.list()) {
    if (other.id === agent.id) continue
    for (const level of SHAREABLE)
      if (
        other.manifest.capabilities.memory_write.some((pattern) => matchesWildcard(pattern, `shared.${level}`)) &&
        wanted.some((pattern) => isOf(pattern, other.name, level))
      )
        shared.add(`${other.id} ${level}`)
  }
  return shared
}
/**
 * Whether a pattern of `memory_read` names the level of an agent. `*` stands for no dot between both: `ann.*` is about
 * the agent `ann`, and about none that calls itself `ann.x`.
 */
function isOf(pattern: string, name: string, level: string): boolean {
  const dot = pattern.lastIndexOf('.')
  if (dot < 0) return pattern.endsWith('*') && matchesWildcard(pattern, name)
  return matchesWildcard(pattern.slice(0, dot), name) && matchesWildcard(pattern.slice(dot + 1), level)
}
