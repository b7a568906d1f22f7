import type { AuditEntry } from '../audit/contract.ts'
import type { CommsEvent } from './schema.ts'

export const MAX_DETAIL = 200

const KIND_OF: Readonly<Record<string, CommsEvent['kind']>> = {
  agent_spawned: 'agent_spawned',
  agent_killed: 'agent_terminated',
  task_posted: 'task_posted',
  task_claimed: 'task_claimed',
  task_completed: 'task_completed',
}
const AGENT = /^agent "(.*)" (?:spawned|killed)/
const TASK = /^task \S+ revision \d+ (.*)$/s
const ASSIGNEE = /^posted for ([0-9a-f-]{36}):/
/** Source and target name these agents. */
const AGENT_OF_TASK = /^(?:posted for|claimed by|completed by) [0-9a-f-]{36}: /

/** An event that an entry of the audit trail is; `undefined` for most. The names of agents are still missing. */
export function fromAudit({ id, timestamp, event, agentId, details, actor }: AuditEntry): CommsEvent | undefined {
  const kind = Object.hasOwn(KIND_OF, event) ? KIND_OF[event] : undefined
  if (!kind) return undefined
  const text = TASK.exec(details)?.[1] ?? details
  return {
    id: `audit-${id}`,
    timestamp,
    kind,
    source_id: agentId,
    source_name: agentId === '' ? withoutAddress(actor) : (AGENT.exec(details)?.[1] ?? ''),
    target_id: ASSIGNEE.exec(text)?.[1] ?? '',
    target_name: '',
    detail: shorten(text.replace(AGENT_OF_TASK, '')),
  }
}

/** A person as the audit trail names them, without where they came from. */
export const withoutAddress = (actor: string): string => actor.replace(/ (?:at|in) \S+$/, '')

/** Cuts between characters. */
export function shorten(text: string): string {
  if (text.length <= MAX_DETAIL) return text
  const cut = text.slice(0, MAX_DETAIL - 1)
  return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}
