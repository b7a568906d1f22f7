import { Refusal } from 'svc/sdk'
import { v7 } from 'uuid'
import type * as v from 'valibot'
import type { ExternalAgents } from './agents.ts'
import { a2aUnreachable } from './errors.ts'
import type { ExternalAgent, SentTask } from './model.ts'
import type { Runtime } from './runtime.ts'
import type { AgentList, CredentialBody, Discovered, SendBody, TaskList, TaskView } from './schema.ts'
import type { SentTasks } from './tasks.ts'
import { toAgent, toTask } from './views.ts'

export { toAgent, toTask }

export async function listAgents(agents: ExternalAgents): Promise<v.InferOutput<typeof AgentList>> {
  const all = (await agents.list()).map(toAgent)
  return { agents: all, total: all.length }
}
export function toDiscovered(agent: ExternalAgent): v.InferOutput<typeof Discovered> {
  const message =
    agent.state === 'trusted'
      ? 'The agent is trusted.'
      : `A person has to trust this agent before anything is sent to it: POST /api/a2a/agents/${agent.id}/approve`
  return { url: agent.url, status: agent.state, agent: toAgent(agent), message }
}
export async function listTasks(
  tasks: SentTasks,
  limit: number,
  offset: number,
): Promise<v.InferOutput<typeof TaskList>> {
  const [found, total] = await Promise.all([tasks.list(limit, offset), tasks.count()])
  return { tasks: found.map(toTask), total }
}

export async function storeCredential(
  { agents, credentials }: Runtime,
  id: string,
  { secret, header }: v.InferOutput<typeof CredentialBody>,
) {
  const agent = await agents.require(id)
  await credentials.store(agent, secret, header, [agents.credentialEntry(agent)])
  return { status: 'stored' as const, agent_id: agent.id }
}

type Sent = v.InferOutput<typeof TaskView>

export async function send(
  { agents, tasks }: Runtime,
  { agent_id: id, url, message, context, session_id: session, task_id: taskId }: SendBody,
  effectId: string | undefined,
  signal: AbortSignal,
): Promise<Sent> {
  const named = id ?? url
  if (named === undefined) throw new Refusal('invalid_request', 'agent_id: name the agent, or give its url')
  const agent = await agents.requireTrusted(named, { signal })
  const { id: sent } = await tasks.send({
    id: effectId ?? v7(),
    agent,
    text: typeof message === 'string' ? message : message.parts.flatMap(({ text }) => text ?? []).join('\n'),
    contextId: context ?? session,
    taskId,
  })
  return settled(await tasks.wait(sent, signal))
}
export async function recallSend({ tasks }: Runtime, id: string, signal: AbortSignal): Promise<Sent | undefined> {
  const known = await tasks.find(id)
  return known && settled(await tasks.wait(known.id, signal))
}
/** A message that did not get there is a failure of the request; a task that failed there is an answer. */
function settled(task: SentTask): Sent {
  if (task.state === 'failed' && task.attempts === 0)
    throw new Refusal(a2aUnreachable, task.error ?? 'the agent cannot be reached')
  return toTask(task)
}
