import { defineService, notify, transform } from 'svc/sdk'
import type { Statement } from 'svc/sdk'

/** Where the content of a block may come from (security facts 1.2). */
export const LABELS = ['ExternalNetwork', 'UserInput', 'Pii', 'Secret', 'UntrustedAgent'] as const
export type Label = (typeof LABELS)[number]
const labels: ReadonlySet<string> = new Set(LABELS)
export const isLabel = (text: string): text is Label => labels.has(text)

/** A picture in a message; a formerly uploaded one has the id of its file. */
export interface SentImage {
  readonly mime: string
  readonly base64: string
  readonly fileId?: string | undefined
  readonly filename?: string | undefined
}
/** A piece of a message. Tool calls and results are blocks, so that a message records everything. */
export type Block =
  | { readonly type: 'text'; readonly text: string; readonly labels?: readonly Label[] | undefined }
  /** The model's reasoning before the rest of its message. For people: no model gets it again. */
  | { readonly type: 'reasoning'; readonly text: string }
  | ({ readonly type: 'image' } & SentImage)
  /**
   * `replay` is data that the provider requires back with these calls. Only the first call of a message has it, and
   * only chat reads it.
   */
  | {
      readonly type: 'call'
      readonly id: string
      readonly tool: string
      readonly args: unknown
      readonly replay?: string | undefined
    }
  | {
      readonly type: 'result'
      readonly callId: string
      readonly tool: string
      readonly text: string
      readonly failed: boolean
      readonly labels?: readonly Label[] | undefined
    }

/** Why a turn failed. `retryable`: the same message may be answered later. */
export interface TurnFailure {
  readonly code: string
  readonly message: string
  readonly retryable: boolean
}
/**
 * `tool` holds results only. `mark`: the model did not finish the text. `failure` is on the message that opened a
 * failed turn: models do not get that turn again.
 */
export interface Message {
  readonly id: string
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly blocks: readonly Block[]
  readonly turnId: string
  /** ISO 8601 UTC. */
  readonly createdAt: string
  readonly mark?: 'cancelled' | 'interrupted' | 'cut'
  readonly failure?: TurnFailure
}
export interface Session {
  readonly id: string
  readonly agentId: string
  readonly label: string | null
  /** The label, otherwise the beginning of the first message of the user; empty without either. */
  readonly title: string
  readonly messageCount: number
  readonly createdAt: string
}

/**
 * Replaces the beginning of a session up to one message. The messages stay stored; a later summary replaces this one
 * too. Undoing a summary makes the one before it valid again.
 */
export interface Summary {
  readonly id: string
  readonly sessionId: string
  readonly text: string
  /** All labels of the summarized messages. */
  readonly labels: readonly Label[]
  readonly firstMessageId: string
  readonly lastMessageId: string
  /** Number of summarized messages, those of earlier summaries included. */
  readonly messageCount: number
  readonly createdAt: string
}

export interface Sessions {
  find(id: string): Promise<Session | undefined>
  /** Sessions of an agent, newest first. */
  list(agentId?: string): Promise<readonly Session[]>
  /** Statements that make the session when it is not there yet; `at`: when it began, ISO 8601 UTC, if not now. */
  ensure(
    sessionId: string,
    agentId: string,
    options?: { readonly at?: string; readonly label?: string | undefined },
  ): readonly Statement[]
  /**
   * Statements that append a message. Rows are append only. The messages of one turn stay together, however many turns
   * were queued in between: the first message fixes the position of its turn. They write nothing when the session was
   * removed. `opens`: the turn has no message yet, so none is looked up.
   */
  append(sessionId: string, message: Message, options?: { readonly opens?: boolean }): readonly Statement[]
  /** Statements that keep a turn which failed from every later one; its messages are still shown, with the failure. */
  fail(sessionId: string, turnId: string, failure: TurnFailure): readonly Statement[]
  /** Statements that hide a turn that was retried or dropped. Its rows stay in the database, for examination. */
  hide(sessionId: string, turnId: string, because: 'retried' | 'dropped'): readonly Statement[]
  /** The newest turn of a session that failed and was neither retried nor dropped. */
  lastFailed(sessionId: string): Promise<string | undefined>
  /** Whether a turn was retried or dropped. */
  isHidden(sessionId: string, turnId: string): Promise<boolean>
  /**
   * The messages that the model gets for a turn: at most `limit`, oldest first, starting with one of the user. Without
   * turns that were accepted later and turns that failed; always with the whole turn itself. A summary comes first, as
   * a message of the user with the summary's id, and the messages it replaces are left out. The cost does not grow with
   * the session.
   */
  tail(sessionId: string, turnId: string, limit: number): Promise<readonly Message[]>
  /** What the model would get for a turn that is accepted now, without that turn's own message. */
  window(sessionId: string, limit: number): Promise<readonly Message[]>
  /** A page of the whole session, oldest first. `before` is a message id; the newest page without it. */
  page(sessionId: string, options: { readonly limit: number; readonly before?: string }): Promise<readonly Message[]>
  /** Numbers of turns of a session: those with a smaller one come first in it. */
  order(sessionId: string, turnIds: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** The messages of one turn, oldest first. */
  turn(sessionId: string, turnId: string): Promise<readonly Message[]>
  /** The summary that holds. */
  summary(sessionId: string): Promise<Summary | undefined>
  /**
   * The messages that no summary replaces, oldest first: the newest `limit` of the turns before the given one. `total`
   * counts all of them, `rested` those since the newest undone summary, or all.
   */
  uncovered(
    sessionId: string,
    options: { readonly limit: number; readonly before?: string },
  ): Promise<{ readonly messages: readonly Message[]; readonly total: number; readonly rested: number }>
  /**
   * Stores a summary together with related statements. Returns `false` and stores nothing when the messages were
   * removed.
   */
  summarise(summary: Summary, statements: readonly Statement[]): Promise<boolean>
  /** Revokes the newest summary and returns its id. */
  restore(sessionId: string): Promise<Summary | undefined>
  /** The session of an agent with that label. */
  findByLabel(agentId: string, label: string): Promise<Session | undefined>
  /** Deletes a session with its messages; a turn that works in it is cancelled. */
  remove(session: Pick<Session, 'id' | 'agentId'>): Promise<void>
  /** Gives the agent a new, empty, active session, of this id if one is given. Throws `agent_not_found`. */
  reset(agentId: string, id?: string): Promise<string>
  /** Makes a session of the agent the active one. Throws `agent_not_found`. */
  activate(agentId: string, sessionId: string): Promise<void>
}
export const Sessions = defineService<Sessions>()('sessions')

/** An agent has a fresh active session; `previousId` is the one before it. */
export const SessionReset = notify<{
  readonly agentId: string
  readonly sessionId: string
  readonly previousId: string
}>('sessions:reset')
/** The messages were removed, so a turn that still runs there has nobody to answer. */
export const SessionCleared = notify<{ readonly agentId: string; readonly sessionId: string }>('sessions:cleared')

/** Applied before old sessions are removed: a plugin that uses this one keeps it. */
export const SessionRemoving = transform<{ readonly sessionId: string; readonly busy: boolean }>('sessions:removing')
/** The part of the model's window that a session uses; the plugin that knows the model computes it. */
export interface SessionContext {
  readonly agentId: string
  readonly sessionId: string
  readonly tokens: number
  /** How the window is used, in tokens, with a description of how full it is. */
  readonly use?: {
    readonly window: number
    readonly system: number
    readonly memory: number
    readonly tools: number
    readonly history: number
    readonly answer: number
    readonly used: number
    readonly pressure: string
  }
}
/** A session is shown: the plugin that knows the model adds the part of its window that the session uses. */
export const SessionMeasured = transform<SessionContext>('sessions:measured')
