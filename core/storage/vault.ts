/** Secrets at rest: AES-256-GCM, a fresh nonce for each record, the record's name bound as associated data. */
export interface Vault {
  /** The secret, or `undefined` when there is none by that name. Never cached, never logged. */
  read(name: string): Promise<string | undefined>
  /** Durable before it settles. */
  write(name: string, secret: string): Promise<void>
  /** Whether there was one. */
  remove(name: string): Promise<boolean>
  /** The names, never the secrets. */
  names(): Promise<readonly string[]>
}
