import type { Principal } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Approvals } from '../../approvals/contract.ts'
import type { Catalog } from '../../catalog/contract.ts'
import type { EntryPoint } from '../../journal/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { UsageLedger } from '../../usage/contract.ts'
import type { AcceptedTurn, Chat, CommandSurface } from '../contract.ts'
import type { CommandRegistry } from './command-registry.ts'

/** What one conversation over a socket has switched on. */
export class Conversation {
  readonly agentId: string
  readonly principal: Principal
  /** The agent's active session while it is undefined. */
  sessionId: string | undefined
  /** What the agent's manifest says while it is undefined. */
  thinking: boolean | undefined
  /** How a turn that it asks for came in. */
  entryPoint: EntryPoint = 'websocket'
  /** Of what the request makes that brought the command, so that it is made once. */
  effectId: string | undefined
  /** Where its commands are typed. */
  surface: CommandSurface = 'web'
  constructor(agentId: string, principal: Principal, sessionId?: string) {
    this.agentId = agentId
    this.principal = principal
    this.sessionId = sessionId
  }

  /** The conversation goes on in another session, which is the active one now. */
  moved(sessionId: string): string {
    if (this.sessionId !== undefined) this.sessionId = sessionId
    return sessionId
  }
}
export interface CommandDeps {
  readonly chat: Chat & {
    /** Whether a turn of the session waits or runs. */
    busy(sessionId: string): Promise<boolean>
  }
  readonly agents: Agents
  readonly sessions: Sessions
  readonly inference: Inference
  /** While they are there. */
  readonly approvals: () => Approvals | undefined
  readonly usage: () => UsageLedger | undefined
  readonly catalog: () => Catalog | undefined
  /** What other plugins added. */
  readonly commands: CommandRegistry
}
/** What a command answers: a text, or a turn whose answer is delivered as that of a message. */
export type CommandAnswer = string | AcceptedTurn

/** Whether a message is a command: a slash and a word, so that a path is not taken for one. */
export function isCommand(text: string): boolean {
  return /^\/[a-zA-Z][a-zA-Z0-9-]*(\s|$)/.test(text)
}
