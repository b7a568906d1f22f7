import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../../agents/contract.ts'
import type { Agents } from '../../agents/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { Chat, Compaction } from '../contract.ts'

const SessionParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid session ID'), v.toLowerCase()) })
const Body = v.optional(v.object({ undo: v.optional(v.boolean(), false) }), {})
const Answer = v.object({
  status: v.picklist(['compacted', 'not_needed', 'restored']),
  message: v.string(),
  messages_summarized: v.optional(v.number()),
  messages_kept: v.optional(v.number()),
  summary_chars: v.optional(v.number()),
})

export function compactRoutes(
  chat: Pick<Chat, 'compact' | 'undoCompaction'>,
  agents: Agents,
  sessions: Sessions,
): readonly AnyRoute[] {
  async function run(
    agentId: string,
    sessionId: string | undefined,
    undo: boolean,
  ): Promise<v.InferOutput<typeof Answer>> {
    if (!undo) return toAnswer(await chat.compact(agentId, sessionId))
    const restored = await chat.undoCompaction(agentId, sessionId)
    return { status: restored === 0 ? 'not_needed' : 'restored', message: describeUndo(restored) }
  }
  const description =
    'The older messages are replaced by a summary in what the model reads; they stay stored and readable. ' +
    '`{"undo": true}` takes the newest summary back. ' +
    'When the model cannot summarise, everything stays as it was.'
  const errors = ['session_not_found', 'conflict', 'service_unavailable'] as const
  const active = defineRoute({
    method: 'POST',
    path: '/api/agents/:id/session/compact',
    summary: 'Summarise the older messages of the active session',
    description,
    auth: 'bearer',
    effect: 'conversation',
    cost: 30,
    params: AgentParams,
    body: Body,
    returns: Answer,
    errors: ['agent_not_found', ...errors],
    async handle({ params, body }) {
      await agents.require(params.id)
      return run(params.id, undefined, body.undo)
    },
  })
  const named = defineRoute({
    method: 'POST',
    path: '/api/sessions/:id/compact',
    summary: 'Summarise the older messages of a session',
    description,
    auth: 'bearer',
    effect: 'conversation',
    cost: 30,
    params: SessionParams,
    body: Body,
    returns: Answer,
    errors,
    async handle({ params, body }) {
      const session = await sessions.find(params.id)
      if (!session) throw new Refusal('session_not_found', `No session ${params.id}`)
      return run(session.agentId, session.id, body.undo)
    },
  })
  return [active, named]
}

/** In the interface's words. */
export function describe({ status, summarized, kept, threshold }: Compaction): string {
  return status === 'compacted'
    ? `Session compacted: ${summarized} messages summarized, ${kept} kept`
    : `No compaction needed: ${kept} messages, compacted by itself over ${threshold}`
}
export function describeUndo(restored: number): string {
  return restored === 0
    ? 'There is no summary to take back'
    : `Summary taken back: ${restored} messages are read in full again`
}
function toAnswer(compaction: Compaction): v.InferOutput<typeof Answer> {
  const { status, summarized, kept, summaryChars } = compaction
  return {
    status,
    message: describe(compaction),
    messages_summarized: summarized,
    messages_kept: kept,
    summary_chars: summaryChars,
  }
}
