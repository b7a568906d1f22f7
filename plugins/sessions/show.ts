import { omitUndefined } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import type { SessionContext } from './contract.ts'
import type { SessionRouteDeps } from './routes.ts'
import { toView } from './view.ts'

/** The usual estimate for a session whose model is not known. */
const CHARS_PER_TOKEN = 4

export async function show(
  { sessions, contextMessages, measured }: SessionRouteDeps,
  sessionId: string,
  agent: Agent | undefined,
  agentId: string,
  { limit, before }: { readonly limit: number; readonly before?: string | undefined },
) {
  const measure = async (): Promise<SessionContext> => {
    const chars = await sessions.chars(sessionId, contextMessages)
    return measured({ agentId, sessionId, tokens: Math.ceil(chars / CHARS_PER_TOKEN) })
  }
  const [session, summary, context, page] = await Promise.all([
    sessions.find(sessionId),
    sessions.summary(sessionId),
    measure(),
    sessions.page(sessionId, { limit, ...omitUndefined({ before }) }),
  ])
  const [first] = page
  return {
    session_id: sessionId,
    agent_id: agentId,
    message_count: session?.messageCount ?? 0,
    context_window_tokens: context.tokens,
    label: session?.label ?? null,
    title: session?.title ?? '',
    created_at: session?.createdAt ?? null,
    active: agent?.sessionId === sessionId,
    compacted_summary: summary?.text ?? null,
    summarized_messages: summary?.messageCount ?? 0,
    ...omitUndefined({ context: context.use }),
    has_earlier: page.length >= limit && first !== undefined && (await sessions.hasEarlier(sessionId, first.id)),
    messages: toView(page),
  }
}
