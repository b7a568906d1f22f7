import * as v from 'valibot'
import { commandLine, exits, Failure } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'

export const Session = v.looseObject({
  id: v.string(),
  agent_id: v.string(),
  agent_name: v.nullish(v.string()),
  message_count: v.number(),
  created_at: v.optional(v.string(), ''),
  label: v.nullish(v.string()),
  /** Its label, else how it begins; empty with nothing in it. */
  title: v.optional(v.string(), ''),
  active: v.optional(v.boolean(), false),
})
export type Session = v.InferOutput<typeof Session>
const SessionList = v.looseObject({ sessions: v.array(Session) })

export const sessionArgs = {
  session: {
    type: 'positional',
    required: true,
    description: `Number in ${commandLine('session list')}, label, id, or the beginning of the id`,
  },
  agent: {
    type: 'string',
    valueHint: 'agent',
    description: 'Agent of the conversation, by name or id (default: assistant)',
  },
} as const

export const countOf = (messages: number): string => `${messages} ${messages === 1 ? 'message' : 'messages'}`

export const Message = v.looseObject({
  id: v.string(),
  role: v.string(),
  content: v.string(),
  created_at: v.optional(v.string(), ''),
  mark: v.optional(v.string()),
  failed: v.optional(v.boolean(), false),
  error: v.optional(v.looseObject({ message: v.optional(v.string(), '') })),
  tools: v.optional(v.array(v.looseObject({ name: v.string(), is_error: v.optional(v.boolean(), false) })), []),
})
export type Message = v.InferOutput<typeof Message>
/** The messages of a session, the oldest first. */
export const Shown = v.looseObject({
  session_id: v.string(),
  message_count: v.number(),
  active: v.optional(v.boolean(), false),
  messages: v.array(Message),
})
export const speakerOf = ({ role }: Message, agent: string): string =>
  role === 'User' ? 'you' : role === 'Assistant' ? agent : role.toLowerCase()

/** The sessions of an agent, newest first: their places are the numbers by which one is named. */
export async function listSessions(client: DaemonClient, agentId: string): Promise<readonly Session[]> {
  return (await client.call('GET', `/api/agents/${agentId}/sessions`, SessionList)).sessions
}

/**
 * A session of an agent by its id, its label, its number or the beginning of its id. Throws a `Failure` that lists the
 * sessions.
 */
export async function requireSession(
  client: DaemonClient,
  session: string,
  agent: string | undefined,
): Promise<Session> {
  const owner = await requireAgent(client, agent)
  const all = await listSessions(client, owner.id)
  const exact =
    all.find(({ id }) => id === session.toLowerCase()) ??
    all.find(({ label }) => label === session) ??
    (/^\d{1,4}$/.test(session) ? all[Number(session) - 1] : undefined)
  if (exact) return exact
  const begun = /^[\da-f-]{4,}$/i.test(session) ? all.filter(({ id }) => id.startsWith(session.toLowerCase())) : []
  if (begun[0] && begun.length === 1) return begun[0]
  if (begun.length > 1)
    throw new Failure(
      exits.usage,
      `"${session}" is the beginning of ${begun.length} ids`,
      `give more of it: ${begun.map(({ id }) => id).join(', ')}`,
    )
  const whose = agent === undefined ? '' : ` ${owner.name}`
  throw new Failure(
    exits.notFound,
    `"${owner.name}" has no session "${session}"`,
    all.length === 0
      ? `it has none yet; ${commandLine(`chat${whose}`)} begins one`
      : `${commandLine(`session list${whose}`)} lists what there is`,
  )
}
