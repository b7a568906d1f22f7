import { allowsHost } from 'svc/internal'
import { idempotencyKey, Refusal } from 'svc/sdk'
import type { Recovery, ToolCallContext } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import { isSettled, isWaiting } from './model.ts'
import type { ExternalAgent, SentTask } from './model.ts'
import type { Runtime } from './runtime.ts'
import { toAgent } from './views.ts'

/** Throws `forbidden` for a host that the manifest of the agent does not allow. */
function hostCheck({ manifest }: Agent): (url: URL) => void {
  const { network } = manifest.capabilities
  return (url) => {
    if (allowsHost(network, url)) return
    const allowed = network.length === 0 ? 'is empty' : `allows: ${network.join(', ')}`
    throw new Refusal('forbidden', `This agent may not reach ${url.host}: capabilities.network ${allowed}`)
  }
}

/** The card as data for a model. */
export async function discover(
  { agents }: Runtime,
  callers: Agents,
  url: string,
  { agentId, signal }: ToolCallContext,
): Promise<string> {
  const check = hostCheck(await callers.require(agentId))
  const found = await agents.discover({ url }, { agentId, check, signal })
  const { name, description, version, status, skills, endpoints, security, warnings } = toAgent(found)
  return JSON.stringify({ name, url: found.url, status, description, version, skills, endpoints, security, warnings })
}

interface SendInput {
  readonly message: string
  readonly agent_url?: string | undefined
  readonly agent_name?: string | undefined
  readonly session_id?: string | undefined
  readonly task_id?: string | undefined
}

/** The id of the message is that of the call, so a call that is made again sends nothing twice. */
export async function send(
  { agents, tasks }: Runtime,
  callers: Agents,
  input: SendInput,
  call: ToolCallContext,
): Promise<string> {
  const named = input.agent_url ?? input.agent_name
  if (named === undefined) throw new Refusal('invalid_request', 'Give agent_url or agent_name.')
  const caller = await callers.require(call.agentId)
  const id = idempotencyKey(call)
  const known = await tasks.find(id)
  if (!known) {
    const check = hostCheck(caller)
    const agent = await agents.requireTrusted(named, { agentId: caller.id, check, signal: call.signal })
    for (const url of addressesOf(agent)) check(url)
    const { message: text, session_id: contextId, task_id: taskId } = input
    await tasks.send({ id, agent, text, contextId, taskId, askedBy: caller.id, hops: call.hops })
  }
  return describe(await tasks.wait(id, call.signal))
}
const addressesOf = ({ url, view }: ExternalAgent): readonly URL[] =>
  [url, ...(view?.endpoints.map((each) => each.url) ?? [])].map((text) => new URL(text))

export async function recoverSend({ tasks }: Runtime, call: ToolCallContext): Promise<Recovery> {
  const task = await tasks.find(idempotencyKey(call))
  if (task && (isSettled(task.state) || isWaiting(task.state)) && task.state !== 'failed')
    return { outcome: 'done', text: describe(task) }
  // The message has the same id again, and is on disk before it is sent.
  return { outcome: 'repeat' }
}

/** Of a task that this agent sent: those of others are none of its business. */
export async function readStatus({ tasks }: Runtime, id: string, call: ToolCallContext): Promise<string> {
  const known = await tasks.find(id)
  const own = known ? [known] : await tasks.ofTask(id)
  const mine = own.filter((each) => each.asked_by === call.agentId)
  if (mine.length !== 1 || !mine[0]) throw new Refusal('a2a_task_not_found', 'You sent no such task with a2a_send.')
  return describe(await tasks.status(mine[0].id, undefined, call.signal))
}

function describe(task: SentTask): string {
  const { agent_name: agent, state, error, result, context_id: session } = task
  if (state === 'failed' && result === null) throw new Refusal('a2a_task_failed', `"${agent}" failed: ${error ?? ''}`)
  const head = JSON.stringify({ agent, task_id: task.task_id ?? task.id, status: state, session_id: session })
  const hint = isSettled(state) || isWaiting(state) ? '' : '\nIt is not done yet: a2a_status tells more.'
  return `${head}${error === null ? '' : `\nerror: ${error}`}\n${result ?? ''}${hint}`
}
