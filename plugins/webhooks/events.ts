import { hash } from 'node:crypto'
import { omitUndefined } from 'svc/sdk'
import type { AuditEntry } from '../audit/contract.ts'

/** The events a webhook can subscribe to. Those of compatible services come first; `all` means every one. */
export const eventNames = [
  'agent_spawned',
  'agent_stopped',
  'message_received',
  'message_completed',
  'agent_error',
  'cron_fired',
  'trigger_fired',
  'workflow_completed',
  'workflow_failed',
  'all',
  'tool_invoked',
  'session_changed',
  'approval_requested',
  'approval_resolved',
  'budget_warning',
  'budget_exceeded',
  'config_changed',
  'backup_created',
  'backup_restored',
  'daemon_started',
  'daemon_stopped',
] as const
export type EventName = (typeof eventNames)[number]
const known: ReadonlySet<string> = new Set(eventNames)
const synonyms: ReadonlyMap<string, EventName> = new Map([
  ['agent_terminated', 'agent_stopped'],
  ['agent_killed', 'agent_stopped'],
  ['message_sent', 'message_completed'],
])

/** `agent.terminated` and `agent_terminated` are both `agent_stopped`; `undefined` for an unknown name. */
export function toEventName(name: string): EventName | undefined {
  const plain = name.trim().toLowerCase().replaceAll('.', '_')
  return known.has(plain) ? (plain as EventName) : synonyms.get(plain)
}

/** An event for receivers, derived from an entry of the audit trail: it exists if and only if the entry is on disk. */
export interface WebhookEvent {
  /** The same whenever it is derived from the same entry. */
  readonly id: string
  readonly event: Exclude<EventName, 'all'>
  /** ISO 8601 UTC. */
  readonly at: string
  readonly agentId: string
  readonly turnId: string | undefined
  readonly data: Readonly<Record<string, string | number | boolean>>
}

const TURN = /^turn ([0-9a-f-]{36})(?: by ([a-z0-9]+) ([a-z]+))?/
const APPROVAL = /^approval ([0-9a-f-]{36}) (requested|approved|rejected|expired)/
const TOOL = /^turn [0-9a-f-]{36}: (\S+) (failed|done)$/

/** The events of an entry of the trail; none for most entries. */
export function toWebhookEvents(entry: AuditEntry): readonly WebhookEvent[] {
  const { id, timestamp, event, agentId, details } = entry
  return readEntry(entry).map(([name, fields]) => ({
    // Not the number alone: after a restore the same number may come again.
    id: `evt_${hash('sha256', JSON.stringify([name, id, timestamp, event, agentId, details])).slice(0, 32)}`,
    event: name,
    at: timestamp,
    agentId,
    turnId: TURN.exec(details)?.[1],
    data: { audit_id: id, ...(agentId === '' ? {} : { agent_id: agentId }), details, ...fields },
  }))
}

type NamedFields = readonly [name: WebhookEvent['event'], fields: WebhookEvent['data']]
type EntryReader = (details: string) => readonly NamedFields[]

/** Entries whose name is that of the event, and which need no more than their text. */
const SAME_NAME: ReadonlySet<string> = new Set([
  'agent_spawned',
  'session_changed',
  'cron_fired',
  'trigger_fired',
  'workflow_completed',
  'workflow_failed',
  'budget_warning',
  'budget_exceeded',
  'backup_created',
  'backup_restored',
  'daemon_started',
  'daemon_stopped',
] satisfies readonly EventName[])

const READERS: Readonly<Record<string, EntryReader>> = {
  agent_message: readTurn,
  turn_interrupted: readTurn,
  agent_killed: () => [['agent_stopped', { reason: 'killed' }]],
  agent_updated: (details) => (details.endsWith(' to Stopped') ? [['agent_stopped', { reason: 'stopped' }]] : []),
  tool_invoked: readToolCall,
  capability_check: readApproval,
  config_change: () => [['config_changed', {}]],
}

function readEntry({ event, details }: AuditEntry): readonly NamedFields[] {
  if (SAME_NAME.has(event)) return [[event as WebhookEvent['event'], {}]]
  return Object.hasOwn(READERS, event) ? (READERS[event]?.(details) ?? []) : []
}

function readToolCall(details: string): readonly NamedFields[] {
  const turnId = TURN.exec(details)?.[1]
  const [, tool, outcome] = TOOL.exec(details) ?? []
  const call = tool === undefined ? {} : { tool, failed: outcome === 'failed' }
  return [['tool_invoked', { ...omitUndefined({ turn_id: turnId }), ...call }]]
}

function readApproval(details: string): readonly NamedFields[] {
  const [, id, status] = APPROVAL.exec(details) ?? []
  if (id === undefined || status === undefined) return []
  if (status === 'requested') return [['approval_requested', { approval_id: id }]]
  return [['approval_resolved', { approval_id: id, status }]]
}

/** A turn has one entry, at its end: so the message and its outcome are two events of the same entry. */
function readTurn(details: string): readonly NamedFields[] {
  const [, id, entryPoint, status] = TURN.exec(details) ?? []
  if (id === undefined || entryPoint === undefined || status === undefined) return []
  const turn = { turn_id: id, entry_point: entryPoint }
  return [
    ['message_received', turn],
    [status === 'done' || status === 'cancelled' ? 'message_completed' : 'agent_error', { ...turn, status }],
  ]
}
