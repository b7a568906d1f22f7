import { omitUndefined } from 'svc/sdk'
import type { Memory, MemoryQuery, MemoryReader } from '../contract.ts'
import type { OpenMemories } from './open.ts'

interface Caller {
  readonly agentId: string
  readonly sessionId: string
  /** Who speaks in the turn; absent: the owner of the daemon. */
  readonly user?: string | undefined
}

/** What an agent finds in a turn. */
export async function searchOwn(
  { memories }: OpenMemories,
  caller: Caller,
  query: Pick<MemoryQuery, 'text' | 'category' | 'limit' | 'signal'>,
) {
  const found = await memories.search({ ...query, reader: readerOf(caller) })
  return found.map(({ memory }) => brief(memory))
}

/** Forgets those of the agent's own that it may see. */
export async function forgetOwn({ memories, agents }: OpenMemories, caller: Caller, ids: readonly string[]) {
  const reader = readerOf(caller)
  const own: string[] = []
  for (const id of new Set(ids)) {
    const memory = await memories.find(id, reader)
    if (memory?.agentId !== caller.agentId) continue
    if (memory.key === undefined) await agents.checkMemory(caller.agentId, 'write', 'memory')
    else await agents.checkMemory(caller.agentId, 'write', memory.key)
    own.push(id)
  }
  const { deleted } = await memories.forget(own, 'the agent')
  return { deleted, not_found: ids.filter((id) => !own.includes(id)) }
}

const readerOf = ({ agentId, sessionId, user }: Caller): MemoryReader => ({
  kind: 'agent',
  agentId,
  sessionId,
  ...omitUndefined({ userId: user }),
})

function brief({ id, key, content, category, tags, source, createdAt, agentId }: Memory) {
  return omitUndefined({
    id,
    key,
    content,
    category,
    ...(tags.length > 0 && { tags }),
    learnt_at: createdAt,
    known_from: { ...omitUndefined(source), labels: source.labels },
    agent_id: agentId,
  })
}
