import { isObject, readJson } from 'svc/sdk'
import type { Statement, Vault } from 'svc/sdk'

/** What is secret of a server of the database. */
export interface ServerSecrets {
  readonly headers: Readonly<Record<string, string>>
  readonly credentials: Readonly<Record<string, string>>
  readonly oauthClientSecret?: string | undefined
  readonly oauthPrivateKey?: string | undefined
}
export const noSecrets: ServerSecrets = { headers: {}, credentials: {} }

const nameOf = (server: string): string => `server:${server}`

export async function readSecrets(vault: Vault, server: string): Promise<ServerSecrets> {
  const text = await vault.read(nameOf(server))
  const found = text === undefined ? {} : readJson(text)
  return isObject(found) ? { ...noSecrets, ...(found as Partial<ServerSecrets>) } : noSecrets
}
/** Stores them together with the statements. */
export const writeSecrets = (
  vault: Vault,
  server: string,
  secrets: ServerSecrets,
  statements: readonly Statement[],
): Promise<void> => vault.write(nameOf(server), JSON.stringify(secrets), statements)

export async function removeSecrets(vault: Vault, server: string, statements: readonly Statement[]): Promise<void> {
  await vault.remove(nameOf(server), statements)
}
