import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Session, Sessions } from '../../sessions/contract.ts'

/** More than anybody reads; `svc session list` has all of them. */
const SHOWN = 20

/** The sessions of an agent, newest first, each with the number that `/sessions <number>` takes. */
export async function listSessions(sessions: Sessions, agent: Agent, current: string): Promise<string> {
  const found = await sessions.list(agent.id)
  if (found.length === 0) return 'This agent has no other session yet. /new begins one.'
  const lines = found.slice(0, SHOWN).map((session, index) => {
    const mark = session.id === current ? '*' : ' '
    const created = session.createdAt.slice(0, 16).replace('T', ' ')
    return `${mark} ${index + 1}. ${titleOf(session)} (${countMessages(session)}, ${created} UTC)`
  })
  const more = found.length > SHOWN ? [`  … and ${found.length - SHOWN} more`] : []
  return [...lines, ...more, '', '/sessions <number> goes back to one.'].join('\n')
}

/** Makes a session the active one, named by its id, its label, its number in the list, or the beginning of its id. */
export async function switchSession(
  { sessions, agents }: { readonly sessions: Sessions; readonly agents: Agents },
  agentId: string,
  reference: string,
): Promise<Session> {
  const found = findSession(await sessions.list(agentId), reference)
  await agents.require(agentId)
  await sessions.activate(agentId, found.id)
  return found
}

export function findSession(all: readonly Session[], reference: string): Session {
  const exact =
    all.find(({ id }) => id === reference.toLowerCase()) ??
    all.find(({ label }) => label === reference) ??
    (/^\d{1,4}$/.test(reference) ? all[Number(reference) - 1] : undefined)
  if (exact) return exact
  const begun = /^[\da-f-]{4,}$/i.test(reference) ? all.filter(({ id }) => id.startsWith(reference.toLowerCase())) : []
  if (begun[0] && begun.length === 1) return begun[0]
  throw new Refusal(
    'session_not_found',
    begun.length > 1
      ? `${begun.length} sessions begin with ${reference}; give more of it`
      : `No session "${reference.slice(0, 50)}" of this agent; /sessions lists them`,
  )
}

export function titleOf({ title }: Session): string {
  return title === '' ? '(no messages yet)' : title
}
export function countMessages({ messageCount }: Session): string {
  return `${messageCount} ${messageCount === 1 ? 'message' : 'messages'}`
}
