import type { OAuthDiscoveryState, StoredOAuthClientInformation, StoredOAuthTokens } from '@modelcontextprotocol/client'
import { readOwnJson } from 'svc/internal'
import { isObject, KeyedQueue } from 'svc/sdk'
import type { Vault } from 'svc/sdk'

/** What is known of the login at one server. It is in the vault as a whole. */
export interface OAuthRecord {
  /** Of the server: what was stored for another address does not count. */
  readonly url: string
  /** `redirect`: the address it was registered with. */
  readonly client?: { readonly information: StoredOAuthClientInformation; readonly redirect: string } | undefined
  readonly tokens?: StoredOAuthTokens | undefined
  /** Milliseconds since 1970; absent when the server did not say. */
  readonly expiresAt?: number | undefined
  readonly discovery?: OAuthDiscoveryState | undefined
  /** What the server asked for when a token was not enough. */
  readonly scope?: string | undefined
  readonly pending?: PendingLogin | undefined
}
/** A login that a person has begun in a browser. */
export interface PendingLogin {
  readonly state: string
  readonly verifier?: string | undefined
  readonly expiresAt: number
}

const PREFIX = 'oauth:'

export class OAuthRecords {
  readonly #vault: Vault
  readonly #queue = new KeyedQueue()
  constructor(vault: Vault) {
    this.#vault = vault
  }
  async read({ name, url = '' }: { readonly name: string; readonly url?: string | undefined }): Promise<OAuthRecord> {
    const secret = await this.#vault.read(`${PREFIX}${name}`)
    const record = secret === undefined ? undefined : (readOwnJson(secret) as OAuthRecord)
    return record?.url === url ? record : { url }
  }
  /** Durable before it settles. One change of a server after the other. */
  async change(
    server: { readonly name: string; readonly url?: string | undefined },
    change: (record: OAuthRecord) => Partial<OAuthRecord>,
  ): Promise<void> {
    await this.#queue.run(server.name, async () => {
      const record = await this.read(server)
      await this.#vault.write(`${PREFIX}${server.name}`, JSON.stringify({ ...record, ...change(record) }))
    })
  }
  /**
   * The server whose login has this state, which counts once: the pending login is taken away before it is returned.
   */
  async takePending(
    isIt: (pending: PendingLogin) => boolean,
  ): Promise<{ readonly server: string; readonly pending: PendingLogin } | undefined> {
    for (const name of await this.#vault.names()) {
      if (!name.startsWith(PREFIX)) continue
      const server = name.slice(PREFIX.length)
      const found = await this.#queue.run(server, async () => {
        const secret = await this.#vault.read(name)
        const record = secret === undefined ? undefined : (readOwnJson(secret) as OAuthRecord)
        if (!record?.pending || !isIt(record.pending)) return undefined
        await this.#vault.write(name, JSON.stringify({ ...record, pending: undefined }))
        return record.pending
      })
      if (found) return { server, pending: found }
    }
    return undefined
  }
  /** Whether there was anything. */
  async remove(server: string): Promise<boolean> {
    return this.#queue.run(server, () => this.#vault.remove(`${PREFIX}${server}`))
  }
  /** Of a client that was registered by hand, of a server that was added while running. */
  async clientSecret(server: string): Promise<string | undefined> {
    const secrets = await this.#vault.read(`server:${server}`)
    const found: unknown = secrets === undefined ? undefined : readOwnJson(secrets)
    const secret = isObject(found) ? found['oauthClientSecret'] : undefined
    return typeof secret === 'string' ? secret : undefined
  }
}
