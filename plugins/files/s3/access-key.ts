import * as v from 'valibot'
import { readOwnJson, readVariable } from 'svc/internal'
import { commandLine, omitUndefined } from 'svc/sdk'
import type { Statement, Vault } from 'svc/sdk'
import type { S3Section } from './section.ts'

/** Told by the daemon that changed the key which is stored. */
export const KEY_TOPIC = 'files.access-key'
const ENTRY = 's3-access-key'

/** What requests to the bucket are signed with. */
export interface AccessKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}
const Stored = v.object({
  accessKeyId: v.string(),
  secretAccessKey: v.string(),
  sessionToken: v.exactOptional(v.string()),
})
export interface AccessKeysDeps {
  readonly section: S3Section
  readonly vault: Pick<Vault, 'read'>
}

/**
 * Finds the access key as those of providers are found: stored over the API first, then the configuration, then the
 * environment. Never keeps one, so the next request is signed with what was stored last.
 */
export class AccessKeys {
  readonly #deps: AccessKeysDeps
  constructor(deps: AccessKeysDeps) {
    this.#deps = deps
  }

  /** What is missing and what to do about it, where there is none. */
  async find(): Promise<AccessKey | { readonly missing: string }> {
    const { section, vault } = this.#deps
    const stored = await vault.read(ENTRY)
    if (stored !== undefined) return v.parse(Stored, readOwnJson(stored))
    const accessKeyId = section.access_key_id ?? read(section.access_key_id_env)
    const secretAccessKey = section.secret_access_key ?? read(section.secret_access_key_env)
    if (accessKeyId === undefined) return missing('access_key_id', section.access_key_id_env)
    if (secretAccessKey === undefined) return missing('secret_access_key', section.secret_access_key_env)
    // One of the environment does not belong to a key of the file.
    const sessionToken = section.access_key_id === undefined ? read(section.session_token_env) : undefined
    return omitUndefined({ accessKeyId, secretAccessKey, sessionToken })
  }
}

export async function isStored(vault: Vault): Promise<boolean> {
  return (await vault.names()).includes(ENTRY)
}
/** Durable before it settles, together with the statements. */
export async function storeKey(vault: Vault, key: AccessKey, entries: readonly Statement[]): Promise<void> {
  await vault.write(ENTRY, JSON.stringify(key), entries)
}
/** The same. */
export async function removeKey(vault: Vault, entries: readonly Statement[]): Promise<void> {
  await vault.remove(ENTRY, entries)
}

const read = (variable: string): string | undefined => readVariable(variable)?.trim() || undefined

function missing(key: string, variable: string) {
  return {
    missing:
      `plugins.files.s3.${key} is missing: store an access key with ${commandLine('files set-key <id>')}, ` +
      `or set it in the file, or the variable ${variable}`,
  }
}
