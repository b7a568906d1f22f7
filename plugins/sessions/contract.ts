import { defineService, notify } from 'svc/sdk'
import type { Statement } from 'svc/sdk'

/** Where the content of a block may come from (security facts 1.2). */
export type Label = 'ExternalNetwork' | 'UserInput' | 'Pii' | 'Secret' | 'UntrustedAgent'

/** A piece of a message. Tool calls and results are blocks, so that a message says all that happened. */
export type Block =
  | { readonly type: 'text'; readonly text: string; readonly labels?: readonly Label[] | undefined }
  | { readonly type: 'image'; readonly mime: string; readonly base64: string }
  | { readonly type: 'call'; readonly id: string; readonly tool: string; readonly args: unknown }
  | { readonly type: 'result'; readonly callId: string; readonly tool: string; readonly text: string; readonly failed: boolean; readonly labels?: readonly Label[] | undefined }

/** `tool` holds results only. `mark` says that the text is not all the model would have said. */
export interface Message {
  readonly id: string
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly blocks: readonly Block[]
  readonly turnId: string
  /** ISO 8601 UTC. */
  readonly createdAt: string
  readonly mark?: 'cancelled' | 'interrupted' | 'cut'
}
export interface Session {
  readonly id: string
  readonly agentId: string
  readonly label: string | null
  readonly messageCount: number
  readonly createdAt: string
}

export interface Sessions {
  find(id: string): Promise<Session | undefined>
  /** Sessions of an agent, newest first. */
  list(agentId?: string): Promise<readonly Session[]>
  /** Statements that make the session when it is not there yet. */
  ensure(sessionId: string, agentId: string): readonly Statement[]
  /**
   * Statements that append a message. Rows are append only. The messages of one turn stand together however many turns
   * were queued meanwhile: the first message of a turn fixes the turn's place. They write nothing when the session is gone.
   */
  append(sessionId: string, message: Message): readonly Statement[]
  /**
   * What the model gets for a turn: at most `limit` messages, oldest first, starting with one of the user, nothing of turns that
   * were accepted after it, and always the whole turn itself. Costs the same however long the session is.
   */
  tail(sessionId: string, turnId: string, limit: number): Promise<readonly Message[]>
  /** A page of the whole session, oldest first. `before` is a message id; the newest page without it. */
  page(sessionId: string, options: { readonly limit: number; readonly before?: string }): Promise<readonly Message[]>
  /** The messages of one turn, oldest first. */
  turn(sessionId: string, turnId: string): Promise<readonly Message[]>
  /** Gives the agent a new, empty, active session and says its id. Throws `agent_not_found`. */
  reset(agentId: string): Promise<string>
}
export const Sessions = defineService<Sessions>()('sessions')

export const SessionReset = notify<{ readonly agentId: string; readonly sessionId: string; readonly previousId: string }>('sessions:reset')
/** The messages are gone, so a turn that still runs there has nobody to answer. */
export const SessionCleared = notify<{ readonly agentId: string; readonly sessionId: string }>('sessions:cleared')
