import { stableId } from 'svc/internal'
import type { AuditEntry } from '../../audit/contract.ts'
import type { TriggerEvent } from './event.ts'

type Facts = Pick<TriggerEvent, 'class' | 'kind' | 'subject' | 'sentence'> &
  Partial<Pick<TriggerEvent, 'agentName' | 'memoryKey' | 'turnId' | 'taskId' | 'publishedId'>>
type Reader = (entry: AuditEntry) => Facts | undefined

const ID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const ORIGIN = new RegExp(` in (${ID})$`)
const ANY_ID = new RegExp(ID)
const TURN = new RegExp(`^turn (${ID}) by [a-z0-9]+ ([a-z]+)(?:: (.*))?$`, 's')
const TOOL = new RegExp(`^turn (${ID}): (\\S+) (failed|done)$`)
const PUBLISHED = new RegExp(`^event (${ID}) "([^"]*)" published`)
const TASK = new RegExp(`^task (${ID}) revision \\d+ (.*): "(.*)"$`, 's')
const APPROVAL = new RegExp(`^approval (${ID}) (requested|approved|rejected|expired)\\b`)

/** The event of an entry; `undefined` for most of what the trail records. */
export function readEntry(entry: AuditEntry): TriggerEvent | undefined {
  const facts = READERS[entry.event]?.(entry)
  if (!facts) return undefined
  const { id, timestamp, event, agentId, details, actor } = entry
  return {
    ...facts,
    // Not the number alone: after a restore the same number may come again.
    id: stableId('trigger-event', String(id), timestamp, event, agentId, details),
    position: id,
    agentId,
    at: Date.parse(timestamp),
    origin: ORIGIN.exec(actor)?.[1] ?? facts.turnId,
  }
}

const READERS: Readonly<Record<string, Reader | undefined>> = {
  agent_spawned: readLifecycle(/^agent "(.*)" spawned/s, 'agent_spawned', 'was spawned'),
  agent_killed: readLifecycle(/^agent "(.*)" killed/s, 'agent_terminated', 'was terminated'),
  agent_updated: readState,
  turn_interrupted: readCrash,
  agent_message: readMessage,
  tool_invoked: readTool,
  task_posted: readTask,
  task_claimed: readTask,
  task_completed: readTask,
  task_changed: readTask,
  memory_access: readMemory,
  event_published: readPublished,
  capability_check: readApproval,
  daemon_started: readSystem,
  daemon_stopped: readSystem,
  budget_warning: readSystem,
  budget_exceeded: readSystem,
  security_system_failed: readSystem,
  security_system_recovered: readSystem,
  backup_created: readSystem,
  backup_deleted: readSystem,
  backup_restored: readSystem,
  plugin_changed: readSystem,
  config_change: readSystem,
  channel_changed: readSystem,
  cron_fired: readOther,
  workflow_completed: readOther,
  workflow_failed: readOther,
  webhook_received: readOther,
  result_undelivered: readOther,
}

function readLifecycle(pattern: RegExp, kind: string, what: string): Reader {
  return ({ agentId, details }) => {
    const name = pattern.exec(details)?.[1]
    if (name === undefined) return undefined
    return { class: 'lifecycle', kind, subject: agentId, agentName: name, sentence: aboutAgent(name, agentId, what) }
  }
}
const aboutAgent = (name: string, id: string, what: string): string => `Agent '${name}' (id: ${id}) ${what}`

const STATES: Readonly<Record<string, readonly [kind: string, what: string] | undefined>> = {
  Paused: ['agent_suspended', 'was paused'],
  Running: ['agent_resumed', 'was resumed'],
  Stopped: ['agent_stopped', 'was stopped'],
}
function readState({ agentId, details }: AuditEntry): Facts | undefined {
  const [, name = '', from, to = ''] = /^agent "(.*)": \w+: (\w+) to (\w+)$/s.exec(details) ?? []
  const found = STATES[to]
  if (!found) return undefined
  const [kind, what] = to === 'Running' && from === 'Stopped' ? ['agent_started', 'was started'] : found
  return { class: 'lifecycle', kind, subject: agentId, agentName: name, sentence: aboutAgent(name, agentId, what) }
}
function readCrash({ agentId, details }: AuditEntry): Facts | undefined {
  const [, turnId, , why = ''] = TURN.exec(details) ?? []
  if (turnId === undefined) return undefined
  const sentence = `A turn of the agent (id: ${agentId}) was cut off: ${why}`
  return { class: 'lifecycle', kind: 'agent_crashed', subject: agentId, turnId, sentence }
}
function readMessage({ agentId, details }: AuditEntry): Facts | undefined {
  const [, turnId, state, why = ''] = TURN.exec(details) ?? []
  if (turnId === undefined) return undefined
  if (state === 'done')
    return { class: 'message', kind: 'message_completed', subject: agentId, turnId, sentence: 'The agent answered' }
  if (state !== 'failed') return undefined
  const sentence = `The agent could not answer: ${why}`
  return { class: 'message', kind: 'message_failed', subject: agentId, turnId, sentence }
}
function readTool({ agentId, details }: AuditEntry): Facts | undefined {
  const [, turnId, tool, outcome] = TOOL.exec(details) ?? []
  if (turnId === undefined) return undefined
  const sentence = `The agent (id: ${agentId}) called ${tool}, which ${outcome === 'done' ? 'worked' : 'failed'}`
  return { class: 'tool', kind: 'tool_result', subject: `${agentId} ${tool}`, turnId, sentence }
}
function readTask({ event, details }: AuditEntry): Facts | undefined {
  const [, taskId, what = '', title = ''] = TASK.exec(details) ?? []
  if (taskId === undefined) return undefined
  const does = what.startsWith('is ') ? what : `was ${what}`
  return { class: 'task', kind: event, subject: taskId, taskId, sentence: `Task '${title}' (id: ${taskId}) ${does}` }
}

const MEMORY = [
  [/^set key "(.*)" \(\d+ bytes\)$/s, 'was set'],
  [/^delete key "(.*)"$/s, 'was deleted'],
  [/^noted "(.*)" \(\d+ characters\)$/s, 'was noted'],
] as const
function readMemory({ agentId, details }: AuditEntry): Facts | undefined {
  for (const [pattern, what] of MEMORY) {
    const key = pattern.exec(details)?.[1]
    if (key === undefined) continue
    const sentence = `The memory key '${key}' of the agent (id: ${agentId}) ${what}`
    return { class: 'memory', kind: 'memory_update', subject: `${agentId} ${key}`, memoryKey: key, sentence }
  }
  if (!details.startsWith('import of ')) return undefined
  const sentence = `The memory of the agent (id: ${agentId}) was changed by an ${details}`
  return { class: 'memory', kind: 'memory_update', subject: agentId, sentence }
}

function readPublished({ agentId, details }: AuditEntry): Facts {
  const [, publishedId, type] = PUBLISHED.exec(details) ?? []
  if (publishedId === undefined || type === undefined)
    return { class: 'custom', kind: 'custom', subject: firstId(details), sentence: details }
  const sentence = `The event '${type}' was published by the agent (id: ${agentId})`
  return { class: 'custom', kind: 'custom', subject: `${agentId} ${type}`, publishedId, sentence }
}
function readApproval({ details }: AuditEntry): Facts | undefined {
  const [, id, state] = APPROVAL.exec(details) ?? []
  if (id === undefined) return undefined
  const kind = state === 'requested' ? 'approval_requested' : 'approval_resolved'
  return { class: 'other', kind, subject: id, sentence: details }
}
/** What the details say counts where there is no agent: one change must not hide another. */
function readSystem({ event, agentId, details }: AuditEntry): Facts {
  return { class: 'system', kind: event, subject: agentId === '' ? details.slice(0, 200) : agentId, sentence: details }
}
function readOther({ event, details }: AuditEntry): Facts {
  return { class: 'other', kind: event, subject: firstId(details), sentence: details }
}
const firstId = (details: string): string => ANY_ID.exec(details)?.[0] ?? details.slice(0, 200)
