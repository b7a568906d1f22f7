/** A JSON object that an adapter keeps with a message. */
export type JsonObject = Readonly<Record<string, unknown>>

/** What is known of a file before it is read. */
export interface AttachmentInfo {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  /** As the sender names it; never a path. */
  readonly name: string
  /** Media type, such as `image/png`. */
  readonly mime: string
  /** Bytes, if known before it is read. */
  readonly size?: number
}
/** A file that somebody on the platform sent. It is read after the message was accepted, perhaps after a restart. */
export interface InboundAttachment extends AttachmentInfo {
  /** What `readAttachment` needs, such as a file id. At most 4 KiB of JSON, without secrets; stored. */
  readonly reference: JsonObject
}
/** A file for the platform. */
export interface OutboundAttachment extends AttachmentInfo {
  readonly size: number
  /** The content, within the limit that the adapter states. */
  bytes(): Promise<Uint8Array>
}

/** A message of a person on the platform. */
export interface InboundMessage {
  /**
   * The platform's id of the message, unique among those of its sender; the host drops a message of this sender whose
   * id it has. Where the platform has none, derive it from what a redelivery repeats, never from the clock.
   */
  readonly id: string
  readonly chat: {
    readonly id: string
    /** `direct`: the bot and one person. */
    readonly kind: 'direct' | 'group'
    readonly title?: string
    /** The server, workspace or team it belongs to, where the platform has them; bindings name it `guild_id`. */
    readonly guildId?: string
  }
  /** The thread of the chat the message is in; absent outside of threads. */
  readonly threadId?: string
  readonly sender: {
    /** The platform's id of the person, which does not change. */
    readonly id: string
    readonly name: string
    /** A second name that allow-lists may use, such as `@ada` or a mail address. */
    readonly handle?: string
    readonly isBot?: boolean
    /** The platform did not verify who the sender is, as on an IRC server without accounts. */
    readonly isUnverified?: boolean
    /** Ids of the sender's roles in the guild, where the platform tells them; bindings name them `roles`. */
    readonly roles?: readonly string[]
  }
  /** Plain text or Markdown, without the mention of the bot. */
  readonly text: string
  readonly attachments: readonly InboundAttachment[]
  /** The bot is mentioned or its message is replied to. Decides in groups only. */
  readonly mentionsBot: boolean
  /** The id of the message this one replies to. */
  readonly replyTo?: string
  /** ISO 8601 UTC, of the platform. */
  readonly sentAt: string
  /** The sender passes on what somebody else wrote: it is no command, and text from outside. */
  readonly isForwarded?: boolean
  /** The message replaces the earlier one with this id. */
  readonly isEdit?: boolean
  /** The agent that the sender names, as with a tag in the subject of a mail. Bindings and policies still decide. */
  readonly agent?: string
  /** What a reply needs beside the ids, such as the subject of a mail. At most 4 KiB of JSON; stored. */
  readonly replyContext?: JsonObject
}

/** Where a message goes. Only the adapter interprets the ids. */
export interface Destination {
  readonly chatId: string
  readonly threadId?: string
  /** Of the message that is answered. */
  readonly replyContext?: JsonObject
}

/** One message for the platform: it fits the limits that the adapter states. */
export interface OutboundMessage {
  /**
   * A UUID, the same on every attempt to send this message: the platform's idempotency key. The adapter shortens or
   * hashes it as the platform requires.
   */
  readonly id: string
  readonly to: Destination
  /** In the dialect of the adapter. Empty for attachments without a text. */
  readonly text: string
  /** The same as plain text, for notifications and platforms that send both. */
  readonly plainText: string
  readonly attachments: readonly OutboundAttachment[]
  /** The platform's id of the message to reply to. */
  readonly replyTo?: string
  /**
   * Choices to show as buttons; only if the adapter has the capability. A press arrives as a message with the value.
   */
  readonly buttons?: readonly { readonly label: string; readonly value: string }[]
  /**
   * An earlier attempt ended without an answer, as with a crash: the platform may have the message. Where it has no
   * idempotency key but can be searched, the adapter looks for the message before it sends it again.
   */
  readonly mayBeSent?: boolean
}

/** A message that the platform accepted. */
export interface SentMessage {
  /** The platform's id of the message; empty where it tells none. */
  readonly id: string
  /** An earlier attempt had sent it, and it was not sent again. */
  readonly wasSentBefore?: boolean
}
