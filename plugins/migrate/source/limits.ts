/** How much of a source is read. */
export interface ReadLimits {
  /** Files and folders together. */
  readonly maxEntries: number
  /** Bytes of one text file, and of one conversation in a database. */
  readonly maxFileBytes: number
  /** Bytes of one database. */
  readonly maxDatabaseBytes: number
  readonly maxSessions: number
  readonly maxMemories: number
  /** Of one session. */
  readonly maxMessages: number
  /** Whether a folder of another owner than the daemon is read. */
  readonly foreignOwner: boolean
}
