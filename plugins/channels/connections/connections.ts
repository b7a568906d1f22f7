import type { ChannelAdapter, ChannelConnection } from 'svc/channels'
import type { Account } from '../accounts/account.ts'

/** The open connections, for the inbox and the outbox. */
export interface Connections {
  /** The open connection of an account; `undefined` while there is none. */
  find(channel: string, accountId: string): OpenConnection | undefined
  /** Calls back after an account connected or its connection ended. Returns a function that removes the listener. */
  onChange(listener: (channel: string, accountId: string) => void): () => void
}
export interface OpenConnection {
  readonly account: Account
  readonly adapter: ChannelAdapter
  /** Counts what is sent. */
  readonly connection: ChannelConnection
  /** Aborts when this connection ends. */
  readonly signal: AbortSignal
  /** Reports an error of sending: rejected credentials end the connection as misconfigured, others are counted. */
  failed(error: unknown): void
  /** A request to the webhook was not signed as it has to be. */
  unsigned(): void
}
