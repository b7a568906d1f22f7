import type { Revocation } from './faults.ts'

/** A file that somebody on the platform sends, or that the platform was sent. */
export interface PlatformFile {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  readonly name: string
  readonly mime: string
  readonly bytes: Uint8Array
}

/** A message that somebody on the platform writes. What is absent is a plain direct message of the usual person. */
export interface PlatformInput {
  readonly text: string
  /** In the group of the platform instead of the direct chat. */
  readonly isGroup?: boolean
  readonly mentionsBot?: boolean
  /** Written by the bot itself, as platforms send back what was posted. */
  readonly isOwn?: boolean
  /** In a thread, where the platform has them. */
  readonly threadId?: string
  /** The platform's id of the message that is answered. */
  readonly replyTo?: string
  readonly files?: readonly PlatformFile[]
  /** The platform's id of an earlier message: this is a new version of it. */
  readonly editOf?: string
  /** The platform's id of an earlier delivery: the platform delivers the same message again. */
  readonly redeliveryOf?: string
  /** Somebody presses the button with this value. */
  readonly button?: string
}

/** A message that the platform accepted and shows. */
export interface PlatformMessage {
  readonly id: string
  readonly chatId: string
  readonly threadId?: string | undefined
  /** As it is now, in the markup of the platform. */
  readonly text: string
  /** The texts before the edits. */
  readonly edits: readonly string[]
  readonly replyTo?: string | undefined
  readonly files: readonly PlatformFile[]
  readonly buttons: readonly { readonly label: string; readonly value: string }[]
  /** The idempotency key it came with. A fake whose platform has one shows a message with a known key once. */
  readonly key?: string | undefined
}

/** What goes wrong with the next message that is sent to the platform. Requests after it work again. */
export type PlatformFault =
  /** 429, with or without a pause in seconds, in the way that the platform names it. */
  | { readonly kind: 'rate_limit'; readonly retryAfterSecs?: number }
  | { readonly kind: 'server_error' }
  /** The connection is reset before the message is taken. */
  | { readonly kind: 'reset' }
  /** The message is taken and shown, and the answer is lost. */
  | { readonly kind: 'lost_answer' }
  /** This message will never be taken, such as one to somebody who blocked the bot. */
  | { readonly kind: 'permanent' }
  /** The credentials were revoked. */
  | { readonly kind: 'auth' }

/** A request to the webhook of the channel. */
export interface PlatformRequest {
  readonly method: 'GET' | 'POST'
  readonly query?: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}
/** Brings a request to the webhook of the channel and returns the answer. */
export type WebhookTarget = (request: PlatformRequest) => Promise<{ readonly status: number; readonly body: string }>

/**
 * A fake of a platform, or a real server with a peer, for the contract suite of channels. It listens on loopback on a
 * port of the system, speaks the protocol of the platform, and refuses what the platform refuses: each refusal that no
 * fault asked for is a line in `violations`.
 */
export interface FakePlatform extends AsyncDisposable {
  /** The name of the channel. */
  readonly channel: string
  /** `[channels.<name>]`: the fields of the adapter, which lead to this platform, with valid credentials. */
  readonly config: Readonly<Record<string, unknown>>
  /** The same with credentials that the platform does not accept. */
  readonly wrongConfig?: Readonly<Record<string, unknown>>
  /** Texts that must not appear in logs, states and errors. */
  readonly secrets: readonly string[]
  /** Ids as the adapter has to report them. */
  readonly chats: {
    readonly direct: string
    readonly group?: string
    readonly thread?: string
  }
  /** The platform has no chats of two: `direct` is a group. */
  readonly hasOnlyGroups?: boolean
  /** The id of the usual person, as the adapter has to report it. */
  readonly person: string
  readonly faults: ReadonlySet<PlatformFault['kind']>
  /** The platform delivers again what was not acknowledged, and what came while the adapter was away. */
  readonly redelivers?: boolean
  /** Messages are sent by requests that the platform answers in JSON. */
  readonly answersInJson?: boolean
  /** The bot can remove its own messages. */
  readonly removes?: boolean
  /** What the adapter declares and this mode of the platform has not. */
  readonly lacks?: ReadonlySet<'edit' | 'edits of others' | 'replies' | 'attachments'>
  /** Whether the platform takes such a file; it takes every one when absent. */
  takesFile?(file: PlatformFile): boolean
  /** The server passes no typing indicators on, although others of its kind do. */
  readonly hidesTyping?: boolean
  /** The kinds of files that people can send; all when absent. */
  readonly fileKinds?: ReadonlySet<PlatformFile['kind']>

  /** Everything that is shown, in order. */
  readonly sent: readonly PlatformMessage[]
  /** Settles when that many messages are shown, with all of them. Rejects after five seconds, naming what came. */
  waitForSent(count: number): Promise<readonly PlatformMessage[]>
  /** Chats in which the bot was shown as typing. */
  readonly typing: readonly string[]
  readonly reactions: readonly { readonly messageId: string; readonly emoji: string }[]
  readonly violations: readonly string[]

  /**
   * Delivers a message as the platform does, and settles with the platform's id when it is handed over: the webhook
   * has answered with success, or the message is where a poll or an open connection finds it. Rejects when the webhook
   * refuses it.
   */
  deliver(input: PlatformInput): Promise<string>
  /** Ends the connection of the adapter, or fails its next poll. Absent where only webhooks receive. */
  disconnect?(): Promise<void>
  /** Settles when the adapter listens, again after `disconnect`. Absent where only webhooks receive. */
  waitForListener?(): Promise<void>
  /** Takes the credentials of the bot back. */
  readonly revocation?: Revocation
  /** Goes wrong with the next message that is sent. Several are used one after another. */
  fail(fault: PlatformFault): void
  /** Where webhooks are sent. The suite sets it before it delivers; platforms without webhooks ignore it. */
  setWebhook(target: WebhookTarget): void
  /**
   * Where the adapter asks at intervals: `wake` ends its pause, or the next one, and settles then. The suite sets it before
   * it opens.
   */
  setWake?(wake: () => Promise<void>): void
  /** Webhook requests that must be answered with 401 and leave nothing behind: unsigned, wrongly signed, replayed. */
  forgeries?(): readonly PlatformRequest[]
}
