import { hash } from 'node:crypto'
import { canonicalJson } from 'svc/internal'
import { isObject, readJson } from 'svc/sdk'
import type { Statement, Vault } from 'svc/sdk'
import type { ServerConfig } from './spec.ts'

/** What is secret of a server of the database. */
export interface ServerSecrets {
  readonly headers: Readonly<Record<string, string>>
  readonly credentials: Readonly<Record<string, string>>
  readonly oauthClientSecret?: string | undefined
  readonly oauthPrivateKey?: string | undefined
  /**
   * Who they were entered for (`receiverOf`): who can write to the database only can change the row of the server, and
   * not this. The version before did not keep it.
   */
  readonly receiver?: string | undefined
}
export const noSecrets: ServerSecrets = { headers: {}, credentials: {} }

/**
 * Who gets the secrets of a server: an origin, or a program with its arguments and with where it can send them. A
 * digest, since every text in the vault counts as a secret.
 */
function receiverOf({ transport, command, args, variables, network, url }: ServerConfig): string {
  const receiver =
    transport === 'stdio'
      ? { command, args, variables: variables ?? {}, network }
      : { origin: new URL(url ?? '').origin }
  return hash('sha256', canonicalJson(receiver))
}
/** Whether they were entered for this server. */
export const areFor = ({ receiver }: ServerSecrets, config: ServerConfig): boolean =>
  receiver === undefined || receiver === receiverOf(config)

const nameOf = (server: string): string => `server:${server}`

export async function readSecrets(vault: Vault, server: string): Promise<ServerSecrets> {
  const text = await vault.read(nameOf(server))
  if (text === undefined) return noSecrets
  const found = readJson(text)
  return isObject(found) ? { ...noSecrets, ...(found as Partial<ServerSecrets>) } : noSecrets
}
/** Those of the version before belong to what the row of the server says when this version first reads it. */
export async function readBound(vault: Vault, config: ServerConfig): Promise<ServerSecrets> {
  const secrets = await readSecrets(vault, config.name)
  if (secrets !== noSecrets && secrets.receiver === undefined) await storeSecrets(vault, config, secrets, [])
  return secrets
}
/** Stores them for this server, together with the statements. */
export async function storeSecrets(
  vault: Vault,
  config: ServerConfig,
  secrets: ServerSecrets,
  statements: readonly Statement[],
): Promise<void> {
  const hasAny = canonicalJson(secrets) !== canonicalJson(noSecrets)
  const record = JSON.stringify({ ...secrets, receiver: receiverOf(config) })
  if (hasAny) await vault.write(nameOf(config.name), record, statements)
  else await removeSecrets(vault, config.name, statements)
}

export async function removeSecrets(vault: Vault, server: string, statements: readonly Statement[]): Promise<void> {
  await vault.remove(nameOf(server), statements)
}
