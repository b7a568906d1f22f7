import { defineService, transform } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { AcceptedTurn } from '../chat/contract.ts'
import type { Label } from '../sessions/contract.ts'

export interface NewAgentMessage {
  /** A UUID, which is that of the turn that answers too; a new one when absent. */
  readonly id?: string | undefined
  /** Id or name of the agent whose message it is. */
  readonly from: string
  /** Id or name of the agent that answers. */
  readonly to: string
  readonly text: string
  /** Messages of two agents with the same key are one conversation. */
  readonly conversation?: string | undefined
  /** What the text carries beside `UntrustedAgent`. */
  readonly labels?: readonly Label[] | undefined
}
/** Messages between agents that no tool asks for. */
export interface AgentMessages {
  /**
   * Settles when the message is on disk, as a turn of the other agent. That one may do no more for it than the sender
   * might. Throws what the tool `agent_send` does: `agent_not_found`, `forbidden` when the manifest of the sender does
   * not name the other agent, `conflict` when one of them does not run or they are the same.
   */
  send(message: NewAgentMessage): Promise<AcceptedTurn>
}
export const AgentMessages = defineService<AgentMessages>()('agent-messages')

/** A message of an agent to another one, by a tool or by `AgentMessages`. */
export interface AgentMessage {
  /** Also that of the turn that answers it. */
  readonly id: string
  readonly from: { readonly id: string; readonly name: string }
  readonly to: { readonly id: string; readonly name: string }
  readonly text: string
}
/** Statements for the batch that makes a message durable: they take effect together with it. */
export const AgentMessageSending = transform<{
  readonly message: AgentMessage
  readonly statements: readonly Statement[]
}>('delegation:message-sending')
