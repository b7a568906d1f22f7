import { toIso } from 'svc/internal'
import type * as v from 'valibot'
import { differences } from './card/view.ts'
import type { CardView, ExternalAgent, SentTask } from './model.ts'
import type { AgentView, TaskView } from './schema.ts'

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))

/** Of an agent of the file whose card has not been read. */
const UNREAD: CardView = {
  name: '',
  description: '',
  version: '',
  provider: '',
  endpoints: [],
  skills: [],
  security: [],
  streaming: false,
  push_notifications: false,
  signature: { state: 'none', keys: [] },
  warnings: [],
}

export function toAgent(agent: ExternalAgent): v.InferOutput<typeof AgentView> {
  const { trusted_view: trusted, state, view: read } = agent
  const view = read ?? UNREAD
  return {
    id: agent.id,
    name: agent.name,
    url: agent.url,
    description: view.description,
    version: view.version,
    provider: view.provider,
    card_name: view.name,
    status: state,
    source: agent.source,
    skills: view.skills.map((skill) => ({ ...skill, tags: [...skill.tags] })),
    endpoints: view.endpoints.map((each) => ({ ...each })),
    security: [...view.security],
    capabilities: { streaming: view.streaming, pushNotifications: view.push_notifications },
    signature: { state: view.signature.state, keys: [...view.signature.keys] },
    warnings: [...view.warnings],
    fingerprint: agent.fingerprint,
    difference: state === 'pending' && trusted ? differences(trusted, view).map((each) => ({ ...each })) : [],
    discovered_by: agent.discovered_by,
    discovered_at: toIso(agent.discovered_at),
    checked_at: isoOrNull(agent.checked_at),
    trusted_at: isoOrNull(agent.trusted_at),
  }
}

/** Interface 2.12. A task that the other side has not named has our id. */
export function toTask(task: SentTask): v.InferOutput<typeof TaskView> {
  return {
    id: task.id,
    task_id: task.task_id ?? task.id,
    status: task.state,
    result: task.result === null ? null : { role: 'agent', parts: [{ type: 'text', text: task.result }] },
    error: task.error,
    agent_id: task.agent_id,
    agent_name: task.agent_name,
    url: task.url,
    session_id: task.context_id,
    message: task.message,
    asked_by: task.asked_by,
    created_at: toIso(task.created_at),
    updated_at: toIso(task.updated_at),
  }
}
