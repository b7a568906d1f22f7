import { searchMessages } from './search.ts'
import type { SearchDeps } from './route.ts'
import { SearchStore } from './store.ts'

/** What the route answers. `complete`: whether all messages were looked at. Throws `agent_not_found`, and when its caller leaves. */
export async function answer(
  { db, agents, maxMessages }: SearchDeps,
  query: { readonly q: string; readonly agent_id?: string | undefined; readonly limit: number },
  signal: AbortSignal,
) {
  const agentId = query.agent_id === undefined ? undefined : (await agents.require(query.agent_id)).id
  const { found, isComplete } = await searchMessages(new SearchStore(db), {
    text: query.q,
    agentId,
    limit: query.limit,
    maxMessages,
    signal,
  })
  const results = found.map((one) => ({
    session_id: one.sessionId,
    agent_id: one.agentId,
    label: one.label,
    message_id: one.messageId,
    role: one.role,
    created_at: one.createdAt,
    snippet: one.snippet,
  }))
  return { results, complete: isComplete }
}
