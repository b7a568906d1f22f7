import { messageOf, orAborted, ServerAway, stableId } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Hooks, Logger, Statement } from 'svc/sdk'
import type { ChannelAdapter, Destination } from 'svc/channels'
import type { AcceptedTurn, Chat, TurnResult, Turns } from '../../chat/contract.ts'
import type { Account } from '../accounts/account.ts'
import type { Clock } from 'svc/internal'
import type { Connections } from '../connections/connections.ts'
import { ReplyFormatted } from '../contract.ts'
import type { Drafts, MessageKind } from '../outbox/message.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { withDefaults } from '../policies/defaults.ts'
import type { Handled } from './inbox.ts'
import { OWNER_CAN_SEE, plainReason } from './plain-words.ts'
import type { InboxRow } from './schema.ts'
import { showTyping } from './typing.ts'

export interface TurnAnswererDeps {
  readonly chat: Pick<Chat, 'accept'>
  readonly turns: Turns
  readonly outbox: Outbox
  readonly connections: Pick<Connections, 'find'>
  readonly hooks: Pick<Hooks, 'apply'>
  readonly clock: Clock
  readonly log: Pick<Logger, 'debug'>
  readonly settings: { readonly format_chars: number }
  /** Told why a message was not answered, in words for the operator. */
  readonly unanswered: (account: Account, problem: string) => void
  readonly background: (work: () => Promise<void>) => void
  /** Aborts when the plugin begins to unload. */
  readonly signal: AbortSignal
}
/** A message with all that is known of where it came from. */
export interface Received {
  readonly row: InboxRow
  readonly account: Account
  readonly adapter: ChannelAdapter
  readonly to: Destination
  /** Answers go to another chat than that of the message. */
  readonly isElsewhere?: boolean
}
type Turn = Pick<AcceptedTurn, 'events' | 'result'>

const RETRY_MS = 5_000
const NOT_ANSWERED = 'This could not be answered.'

/** Delivers the answer of a turn to the chat it was asked in. */
export class TurnAnswerer {
  readonly #deps: TurnAnswererDeps
  constructor(deps: TurnAnswererDeps) {
    this.#deps = deps
  }

  /** The turn that an earlier attempt began for this message. */
  async begun({ row }: Received): Promise<{ readonly agentId: string } | undefined> {
    return isRepeated(row) ? this.#deps.turns.find(row.id) : undefined
  }
  /** Answers with a turn that is on record. */
  async resume(received: Received, agentId: string): Promise<Handled> {
    return this.answer(received, agentId, () => this.#deps.turns.replay(received.row.id))
  }

  /** Answers with the turn that `start` accepts; its id is that of the message. */
  async answer(received: Received, agentId: string, start: () => Promise<Turn | undefined>): Promise<Handled> {
    const stopTyping = showTyping(
      {
        clock: this.#deps.clock,
        background: this.#deps.background,
        connection: () => this.#deps.connections.find(received.account.channel, received.account.id),
        failed: (error) => this.#debug('the typing indicator failed', error),
      },
      received.to,
    )
    try {
      const turn = await start()
      if (!turn) throw new Refusal('service_unavailable', 'The turn is not on record')
      const drafts = await this.#orLeave(this.#follow(received, agentId, turn))
      return await this.#deliver(received, agentId, await this.#orLeave(turn.result()), drafts)
    } catch (error) {
      return await this.#failed(received, agentId, error)
    } finally {
      stopTyping()
    }
  }

  /** A turn may wait for a person for hours: unloading does not. */
  #orLeave<T>(work: Promise<T>): Promise<T> {
    return orAborted(work, this.#deps.signal)
  }

  /** Shows the answer while it is written, where the platform edits. Returns the messages that show it. */
  async #follow(received: Received, agentId: string, turn: Turn): Promise<Drafts> {
    const { outbox, connections, clock } = this.#deps
    const { row, account, adapter, to } = received
    const messageId = answerId(row)
    const open = connections.find(account.channel, account.id)
    const isStreamed = withDefaults(account.settings).streaming && adapter.capabilities.edit !== undefined
    const drafts: Drafts = isRepeated(row) ? await outbox.drafts(messageId) : new Map()
    if (!isStreamed || !open?.connection.edit || drafts.size > 0) return drafts
    const { streamAnswer } = await import('./answer-stream.ts')
    return streamAnswer(turn.events(), {
      outbox,
      clock,
      open,
      account,
      messageId,
      agentId,
      turnId: row.id,
      to,
      replyTo: replyTo(received),
      maxFormattedChars: this.#deps.settings.format_chars,
      failed: (error) => this.#debug('an answer cannot be shown while it is written', error),
    })
  }

  async #deliver(received: Received, agentId: string, result: TurnResult, drafts: Drafts): Promise<Handled> {
    const { row, account } = received
    const { text } = await this.#deps.hooks.apply(ReplyFormatted, {
      channel: account.channel,
      accountId: account.id,
      chatId: received.to.chatId,
      agentId,
      text: textOf(result),
    })
    if (text.trim() === '' && result.stop !== 'cancelled' && !(await this.#deps.outbox.hasSent(row.id)))
      return this.#answered(received, agentId, 'notice', 'The agent ended without an answer.')
    return this.#answered(received, agentId, 'answer', text, drafts)
  }
  async #answered(
    received: Received,
    agentId: string,
    kind: MessageKind,
    text: string,
    drafts?: Drafts,
  ): Promise<Handled> {
    return { outcome: 'answered', agentId, statements: await this.say(received, kind, text, { agentId, drafts }) }
  }
  /** Statements that answer a message with a text. */
  say(
    received: Received,
    kind: MessageKind,
    text: string,
    { agentId, drafts }: { readonly agentId?: string; readonly drafts?: Drafts | undefined } = {},
  ): Promise<readonly Statement[]> {
    const { row, account, adapter, to } = received
    // An error comes after what was shown of the answer, never in its place.
    const id = kind === 'error' || kind === 'notice' ? stableId('reply', row.id, kind) : answerId(row)
    return this.#deps.outbox.add({
      id,
      kind,
      account,
      capabilities: adapter.capabilities,
      to,
      text,
      replyTo: replyTo(received),
      drafts,
      ...(agentId !== undefined && { agentId, turnId: row.id }),
    })
  }

  async #failed(received: Received, agentId: string, error: unknown): Promise<Handled> {
    const { signal, turns } = this.#deps
    if (signal.aborted) return { outcome: 'released' }
    const turn = await turns.find(received.row.id)
    // It has not begun, or it goes on elsewhere: the answer comes later.
    if (!turn) return this.#notAccepted(received, agentId, error)
    if (['queued', 'running', 'waiting'].includes(turn.state))
      return { outcome: 'postponed', reason: 'the turn is being worked on', afterMs: RETRY_MS }
    // It did not fail: its result could not be read, or its answer not be prepared.
    if (turn.state === 'done') {
      if (!(error instanceof ServerAway)) throw error
      return { outcome: 'postponed', reason: error.message, afterMs: RETRY_MS }
    }
    const hint = turn.failure?.retryable === true ? ' /retry asks again.' : ''
    if (turn.state === 'interrupted')
      return this.#answered(received, agentId, 'error', `${NOT_ANSWERED} The service stopped meanwhile. Send it again.`)
    return this.#sayFailed(received, agentId, {
      code: turn.failure?.code,
      reason: turn.error ?? 'internal error',
      hint,
    })
  }
  async #notAccepted(received: Received, agentId: string, error: unknown): Promise<Handled> {
    if (!(error instanceof Refusal)) throw error
    if (error.code === 'rate_limit' || error.code === 'service_unavailable')
      return {
        outcome: 'postponed',
        reason: error.message,
        afterMs: error.retryAfterSecs === undefined ? RETRY_MS : error.retryAfterSecs * 1000,
      }
    return this.#sayFailed(received, '', { code: error.code, reason: error.message, hint: '' })
  }
  #sayFailed(
    received: Received,
    agentId: string,
    { code, reason, hint }: { readonly code: string | undefined; readonly reason: string; readonly hint: string },
  ): Promise<Handled> {
    const { account, row } = received
    this.#deps.unanswered(account, `a message in chat ${row.message.chat.id} was not answered: ${reason}`)
    const text = `${NOT_ANSWERED} ${plainReason(code)} ${OWNER_CAN_SEE}${hint}`
    return this.#answered(received, agentId, 'error', text)
  }
  #debug(message: string, error: unknown): void {
    this.#deps.log.debug(message, { error: messageOf(error) })
  }
}

/** One that was postponed is not counted as an attempt, and may show a part of its answer all the same. */
function isRepeated({ attempts, reason }: InboxRow): boolean {
  return attempts > 1 || reason !== null
}
export function answerId(row: Pick<InboxRow, 'id'>): string {
  return stableId('reply', row.id)
}
function replyTo({ row, adapter, isElsewhere }: Received): string | undefined {
  const { chat, id } = row.message
  if (isElsewhere === true) return undefined
  return chat.kind === 'group' && adapter.capabilities.replies === true ? id : undefined
}
function textOf({ text, stop }: TurnResult): string {
  if (text.trim() === '') return text
  if (stop === 'cancelled') return `${text}\n\n*Stopped.*`
  if (stop === 'length') return `${text}\n\n*The answer was cut: it reached its longest length.*`
  if (stop === 'iterations') return `${text}\n\n*Stopped: the agent may not take more steps for one message.*`
  return text
}
