import { defineService, notify, transform } from 'svc/sdk'

/** What other plugins may know of the chat channels. */
export interface ChannelAccounts {
  /** Names of the channels with an account, enabled or not, without duplicates. */
  configured(): Promise<readonly string[]>
  /**
   * Adds an account as `POST /api/channels/{name}/configure` does; its secrets go to the vault. `false` when there is one
   * of this name, which stays as it is. `isCheck` makes nothing. Throws `channel_not_found`, and `invalid_request` that
   * names the field.
   */
  add(account: {
    readonly channel: string
    readonly id: string
    readonly enabled: boolean
    readonly fields: Readonly<Record<string, unknown>>
    readonly isCheck?: boolean
  }): Promise<boolean>
}
export const ChannelAccounts = defineService<ChannelAccounts>()('channel-accounts')

/** A chat of a platform that messages can be sent to. */
export interface ChannelTarget {
  /** Any of its names, such as `telegram`. */
  readonly channel: string
  /** The only one, or `default`, when absent. */
  readonly account?: string | undefined
  /** Id of the chat, as the platform has it. */
  readonly to: string
  readonly thread?: string | undefined
  /** Whose message it is: its manifest has to let it use the channel, and its deliveries list the message. */
  readonly agentId?: string | undefined
}
export interface ChannelMessage extends ChannelTarget {
  /** Names this result: however often it is sent, at most one visible message comes of it. */
  readonly id: string
  /** Markdown. */
  readonly text: string
  readonly turnId?: string | undefined
}
/** Sends results to chats: answers of agents to programs, of schedules and of workflows. */
export interface ChannelMessages {
  /**
   * Throws unless messages to this chat would be taken: `channel_not_found` for an unknown channel or account,
   * `invalid_request` for one that is disabled, `forbidden` when the manifest of the agent does not name the channel.
   */
  check(target: ChannelTarget): Promise<void>
  /** Settles when the message is on disk; it is sent in its turn, and tried again as every other. Throws as `check`. */
  send(message: ChannelMessage): Promise<void>
  /** The chat in which an agent answered last, as long as that message is kept. */
  lastChat(agentId: string): Promise<ChannelTarget | undefined>
}
export const ChannelMessages = defineService<ChannelMessages>()('channel-messages')

/** An account of a chat platform can send and receive messages now. */
export const ChannelConnected = notify<{ readonly channel: string; readonly accountId: string }>('channels:connected')
/** It no longer can. */
export const ChannelDisconnected = notify<{
  readonly channel: string
  readonly accountId: string
  readonly reason: string
}>('channels:disconnected')

/** A person's message passed every rule of the operator. It is on disk. */
export const MessageReceived = notify<{
  /** Also that of the turn that answers it. */
  readonly id: string
  readonly channel: string
  readonly accountId: string
  readonly chatId: string
  readonly senderId: string
  readonly text: string
}>('channels:message-received')
/** The platform took a message, or will never take it. */
export const MessageSent = notify<{
  readonly id: string
  readonly channel: string
  readonly accountId: string
  readonly chatId: string
  readonly agentId: string
  readonly state: 'sent' | 'dead'
  /** Why it will never be taken. */
  readonly error: string | null
}>('channels:message-sent')
/** An answer is about to be stored: a listener may change its text, which is Markdown. */
export const ReplyFormatted = transform<{
  readonly channel: string
  readonly accountId: string
  readonly chatId: string
  readonly agentId: string
  readonly text: string
}>('channels:reply-formatted')
