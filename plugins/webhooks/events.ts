import { hash } from 'node:crypto'
import type { AuditEntry } from '../audit/contract.ts'

/** What can be subscribed to. Those of compatible services first; `all` stands for every one. */
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

/** `agent.terminated` and `agent_terminated` are both `agent_stopped`; `undefined` for a name that is none. */
export function toEvent(name: string): EventName | undefined {
  const plain = name.trim().toLowerCase().replaceAll('.', '_')
  return known.has(plain) ? (plain as EventName) : synonyms.get(plain)
}

/** Something that happened, as it stands in the audit trail: it is there if and only if it is on disk. */
export interface Happening {
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

/** What an entry of the trail tells to those outside; nothing for most of them. */
export function happeningsOf(entry: AuditEntry): readonly Happening[] {
  const { id, timestamp, event, agentId, details } = entry
  return read(entry).map(([name, more]) => ({
    // Not the number alone: after a restore a number may come again.
    id: `evt_${hash('sha256', JSON.stringify([name, id, timestamp, event, agentId, details])).slice(0, 32)}`,
    event: name,
    at: timestamp,
    agentId,
    turnId: TURN.exec(details)?.[1],
    data: { audit_id: id, ...(agentId === '' ? {} : { agent_id: agentId }), details, ...more },
  }))
}

type Found = readonly [name: Happening['event'], more: Happening['data']]
function read(entry: AuditEntry): readonly Found[] {
  if (entry.event === 'agent_message' || entry.event === 'turn_interrupted') return ofTurn(entry.details)
  const found = single(entry)
  return found ? [found] : []
}
function single({ event, details }: AuditEntry): Found | undefined {
  switch (event) {
    case 'agent_killed':
      return ['agent_stopped', { reason: 'killed' }]
    case 'agent_updated':
      return details.endsWith(' to Stopped') ? ['agent_stopped', { reason: 'stopped' }] : undefined
    case 'tool_invoked': {
      const [, tool, outcome] = TOOL.exec(details) ?? []
      return [
        'tool_invoked',
        { ...turnOf(details), ...(tool === undefined ? {} : { tool, failed: outcome === 'failed' }) },
      ]
    }
    case 'capability_check': {
      const [, id, what] = APPROVAL.exec(details) ?? []
      return id === undefined || what === undefined
        ? undefined
        : what === 'requested'
          ? ['approval_requested', { approval_id: id }]
          : ['approval_resolved', { approval_id: id, status: what }]
    }
    case 'config_change':
      return ['config_changed', {}]
    case 'agent_spawned':
    case 'session_changed':
    case 'cron_fired':
    case 'trigger_fired':
    case 'workflow_completed':
    case 'workflow_failed':
    case 'budget_warning':
    case 'budget_exceeded':
    case 'backup_created':
    case 'backup_restored':
    case 'daemon_started':
    case 'daemon_stopped':
      return [event, {}]
    default:
      return undefined
  }
}
/** A turn has one entry, at its end, in every case: that a message came in is told together with what came of it. */
function ofTurn(details: string): readonly Found[] {
  const [, id, door, state] = TURN.exec(details) ?? []
  if (id === undefined || door === undefined || state === undefined) return []
  const turn = { turn_id: id, door }
  return [
    ['message_received', turn],
    [state === 'done' || state === 'cancelled' ? 'message_completed' : 'agent_error', { ...turn, status: state }],
  ]
}
function turnOf(details: string): Happening['data'] {
  const id = TURN.exec(details)?.[1]
  return id === undefined ? {} : { turn_id: id }
}
