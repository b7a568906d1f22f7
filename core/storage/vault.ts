import type { Statement } from './database.ts'

/** Secrets at rest: AES-256-GCM, a fresh nonce for each record, the record's name bound as associated data. */
export interface Vault {
  /** The secret, or `undefined` when there is none by that name. Never cached, never logged. */
  read(name: string): Promise<string | undefined>
  /** Durable before it settles, in one batch with the statements, such as the entry in the audit log. */
  write(name: string, secret: string, entries?: readonly Statement[]): Promise<void>
  /** Whether there was one. The statements are done in any case, in the same batch. */
  remove(name: string, entries?: readonly Statement[]): Promise<boolean>
  /** The names, never the secrets. */
  names(): Promise<readonly string[]>
}
