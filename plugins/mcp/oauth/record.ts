import { createHash } from 'node:crypto'
import type { OAuthDiscoveryState, StoredOAuthClientInformation, StoredOAuthTokens } from '@modelcontextprotocol/client'
import { readOwnJson } from 'svc/internal'
import { KeyedQueue } from 'svc/sdk'
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
type Addressed = { readonly name: string; readonly url?: string | undefined }
/** One for each address: a server that is tried at another one changes nothing of the login that is used. */
const keyOf = ({ name, url = '' }: Addressed): string =>
  `${PREFIX}${name}:${createHash('sha256').update(url).digest('hex').slice(0, 16)}`
const serverOf = (key: string): string => key.slice(PREFIX.length, key.lastIndexOf(':'))

export class OAuthRecords {
  readonly #vault: Vault
  readonly #queue = new KeyedQueue()
  constructor(vault: Vault) {
    this.#vault = vault
  }
  async read(server: Addressed): Promise<OAuthRecord> {
    const secret = await this.#vault.read(keyOf(server))
    return secret === undefined ? { url: server.url ?? '' } : (readOwnJson(secret) as OAuthRecord)
  }
  /** Durable before it settles. One change of a server after the other. */
  async change(server: Addressed, change: (record: OAuthRecord) => Partial<OAuthRecord>): Promise<void> {
    await this.#queue.run(server.name, async () => {
      const record = await this.read(server)
      await this.#vault.write(keyOf(server), JSON.stringify({ ...record, ...change(record) }))
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
      const server = serverOf(name)
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
  /** Those of all addresses but this one. */
  async removeOthers(server: Addressed): Promise<void> {
    await this.#removeWhere(server.name, (key) => key !== keyOf(server))
  }
  async removeOf(server: Addressed): Promise<void> {
    await this.#removeWhere(server.name, (key) => key === keyOf(server))
  }
  async remove(server: string): Promise<void> {
    await this.#removeWhere(server, () => true)
  }
  async #removeWhere(server: string, isMeant: (key: string) => boolean): Promise<void> {
    await this.#queue.run(server, async () => {
      for (const key of await this.#vault.names())
        if (key.startsWith(PREFIX) && serverOf(key) === server && isMeant(key)) await this.#vault.remove(key)
    })
  }
}
