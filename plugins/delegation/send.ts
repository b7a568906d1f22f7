import { createHash } from 'node:crypto'
import { v7 } from 'uuid'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Hooks, ToolCallContext } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { AcceptedTurn, Chat } from '../chat/contract.ts'
import { isLabel } from '../sessions/contract.ts'
import type { Label } from '../sessions/contract.ts'
import type { Chains } from './chains.ts'
import { AgentMessageSending } from './contract.ts'
import type { NewAgentMessage } from './contract.ts'

export interface SendDeps {
  readonly agents: Agents
  readonly chat: Chat
  readonly audit: Audit
  readonly hooks: Pick<Hooks, 'apply'>
  readonly chains: Chains
  readonly maxDepth: number
}

/**
 * Sends a message to another agent and waits for its answer. Throws `forbidden`, `agent_not_found` and `conflict`,
 * worded for the model.
 */
export async function send(
  deps: SendDeps,
  to: string,
  message: string,
  key: string,
  call: Pick<ToolCallContext, 'agentId' | 'turnId' | 'signal' | 'labels' | 'onBehalf' | 'hops'>,
): Promise<string> {
  const { agents, chains, maxDepth } = deps
  const from = await agents.require(call.agentId)
  const target = await requireTarget(deps, from, to)
  const chain = chains.of(call.turnId)
  if (chain.includes(target.id))
    throw new Refusal('conflict', `"${target.name}" is waiting for this answer; it cannot answer before.`)
  if (chain.length + 1 > maxDepth)
    throw new Refusal(
      'conflict',
      `Agents ask agents ${maxDepth} deep already (plugins.delegation.max_depth). Answer with what you know.`,
    )
  await agents.requireRunning(target.id)
  // Each pair of agents has its own conversations, invisible in the target's other sessions.
  const sessionId = conversation(from.id, target.id, key)
  if (chains.deadlocks(call.turnId, sessionId))
    throw new Refusal('conflict', `"${target.name}" waits for something that waits for this agent. Try again later.`)
  const labels = (call.labels ?? []).filter(isLabel)
  const waiting = [...chain, from.id]
  const onBehalf = [...(call.onBehalf ?? []), from.id]
  const sent = { from, target, text: message, sessionId, labels, onBehalf, within: call.turnId, hops: call.hops }
  const turn = await accept(deps, sent)
  const forget = chains.add(turn.id, { from: call.turnId, chain: waiting, sessionId })
  const stop = (): void => turn.cancel()
  call.signal.addEventListener('abort', stop, { once: true })
  if (call.signal.aborted) stop()
  try {
    return (await turn.result()).text
  } catch (error) {
    if (call.signal.aborted) throw error
    throw new Refusal(
      'service_unavailable',
      `"${target.name}" could not answer: ${error instanceof Error ? error.message : 'unknown reason'}`,
      { cause: error },
    )
  } finally {
    call.signal.removeEventListener('abort', stop)
    forget()
  }
}

/** The same for a message that no turn waits for. */
export async function post(deps: SendDeps, message: NewAgentMessage): Promise<AcceptedTurn> {
  const { agents, chains } = deps
  const { id, text, conversation: key = '', labels = [] } = message
  const from = await agents.resolve(message.from)
  const target = await requireTarget(deps, from, message.to)
  await agents.requireRunning(from.id)
  await agents.requireRunning(target.id)
  const sessionId = conversation(from.id, target.id, key)
  // The other agent may do no more than the sender while it answers.
  const onBehalf = [from.id]
  const turn = await accept(deps, { id, from, target, text, sessionId, labels, onBehalf, resumable: true })
  const forget = chains.add(turn.id, { from: '', chain: [from.id], sessionId })
  turn.result().then(forget, forget)
  return turn
}

/** The agent that a message is for. Throws `agent_not_found`, `forbidden` and `conflict`. */
async function requireTarget({ agents, audit }: SendDeps, from: Agent, to: string): Promise<Agent> {
  const target = await agents.resolve(to)
  if (target.id === from.id)
    throw new Refusal('conflict', 'An agent cannot send to itself: it would wait for its own answer.')
  if (agents.mayMessage(from, target)) return target
  await audit.write({
    event: 'capability_check',
    agentId: from.id,
    details: `denied: message to agent "${target.name}"`,
  })
  throw new Refusal(
    'forbidden',
    `This agent may not send to "${target.name}": capabilities.agent_message of its manifest does not name it.`,
  )
}

interface Accepting {
  readonly id?: string | undefined
  readonly from: Agent
  readonly target: Agent
  readonly text: string
  readonly sessionId: string
  readonly labels: readonly Label[]
  readonly onBehalf: readonly string[]
  readonly within?: string
  readonly hops?: number | undefined
  readonly resumable?: boolean
}
async function accept({ chat, hooks }: SendDeps, message: Accepting): Promise<AcceptedTurn> {
  const { id = v7(), from, target, text, sessionId, labels, onBehalf, within, hops, resumable } = message
  const { statements } = await hooks.apply(AgentMessageSending, {
    message: { id, from: { id: from.id, name: from.name }, to: { id: target.id, name: target.name }, text },
    statements: [],
  })
  const to = { agentId: target.id, sessionId }
  const more = omitUndefined({ within, hops, resumable })
  return chat.accept({ id, ...to, text, entryPoint: 'agent', labels, onBehalf, ...more }, statements)
}

/** The same session for the same pair and key, as a UUID (version 8: made from a hash). */
function conversation(from: string, to: string, key: string): string {
  const hex = createHash('sha256').update(`agent-conversation\0${from}\0${to}\0${key}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
