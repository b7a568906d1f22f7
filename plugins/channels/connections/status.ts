/** What a connection is doing. */
export type AccountState =
  | 'disabled'
  | 'misconfigured'
  | 'connecting'
  | 'connected'
  | 'backing_off'
  /** Another daemon on the same database is connected. */
  | 'standby'
  | 'needs_login'
  | 'missing_dependency'
  | 'retired'
  | 'error'

/** Of one account, since it was started. Times are milliseconds since 1970. */
export interface ConnectionStatus {
  readonly state: AccountState
  /** When it connected. */
  readonly startedAt: number | undefined
  readonly lastMessageAt: number | undefined
  readonly messagesReceived: number
  readonly messagesSent: number
  readonly failed: number
  readonly nextRetryAt: number | undefined
  /** Without secrets. */
  readonly lastError: string | undefined
}
export const initialStatus = (state: AccountState, lastError?: string): ConnectionStatus => ({
  state,
  startedAt: undefined,
  lastMessageAt: undefined,
  messagesReceived: 0,
  messagesSent: 0,
  failed: 0,
  nextRetryAt: undefined,
  lastError,
})
