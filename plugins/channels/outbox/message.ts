import { stableId } from 'svc/internal'
import type { ChannelCapabilities, Destination, JsonObject } from 'svc/channels'
import type { Account } from '../accounts/account.ts'

/** What a message is to its reader. Notices, errors and approvals are never sent to public platforms. */
export type MessageKind = 'answer' | 'tool' | 'command' | 'notice' | 'error' | 'approval'
export interface Button {
  readonly label: string
  readonly value: string
}
/** A file of an agent's workspace, read when it is sent. */
export interface StoredAttachment {
  readonly agentId: string
  /** Relative to the workspace. */
  readonly path: string
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  readonly name: string
  readonly mime: string
  readonly size: number
}

/**
 * Messages that show a result while it is written, by the number of the part, with the platform's id; `null` for one
 * that may be there, but whose id was lost.
 */
export type Drafts = ReadonlyMap<number, string | null>

/** One logical result for one chat. However often it is added, at most one visible message comes of it. */
export interface OutgoingMessage {
  /** A UUID, the same on every attempt to add this result: see `stableId`. */
  readonly id: string
  readonly kind: MessageKind
  readonly account: Pick<Account, 'channel' | 'id' | 'settings'>
  readonly capabilities: ChannelCapabilities
  readonly to: Destination
  /** Markdown. */
  readonly text: string
  readonly replyTo?: string | undefined
  readonly buttons?: readonly Button[] | undefined
  readonly attachments?: readonly StoredAttachment[] | undefined
  /** Whose result it is, for the list of its deliveries. */
  readonly agentId?: string | undefined
  readonly turnId?: string | undefined
  /** Messages that already show a part of it: they are edited. */
  readonly drafts?: Drafts | undefined
}

/** What a row of the outbox holds for the adapter. */
export interface Payload {
  readonly text: string
  readonly plainText: string
  readonly replyTo?: string | undefined
  readonly replyContext?: JsonObject | undefined
  readonly buttons?: readonly Button[] | undefined
  readonly attachments?: readonly StoredAttachment[] | undefined
  /** The message showed a part that the final text does not have. */
  readonly isWithdrawn?: true | undefined
}

/** The id of one message of a result, which is the platform's idempotency key. */
export function partId(messageId: string, part: number): string {
  return stableId(messageId, String(part))
}

/** The message of a result that another plugin sends, by the id of the result. */
export function resultMessageId(resultId: string): string {
  return stableId('result', resultId)
}
