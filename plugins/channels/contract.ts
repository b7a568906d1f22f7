import { defineService, notify, transform } from 'svc/sdk'

/** What other plugins may know of the chat channels. */
export interface ChannelAccounts {
  /** Names of the channels with an account, enabled or not, without duplicates. */
  configured(): Promise<readonly string[]>
}
export const ChannelAccounts = defineService<ChannelAccounts>()('channel-accounts')

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
