import { createHash } from 'node:crypto'
import { canonicalJson, messageOf, toIso } from 'svc/internal'
import { KeyedQueue, Refusal, SerialQueue } from 'svc/sdk'
import type { Logger, Vault } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { ServerEntry, Settings } from '../config.ts'
import { noFeatures } from '../connection/features.ts'
import type { ClientFeatures } from '../connection/features.ts'
import type { ToolSet } from '../tools/registry.ts'
import { toConfig } from './addition.ts'
import { areFor, readBound } from './secrets.ts'
import { Server } from './server.ts'
import type { ServerDeps } from './server.ts'
import { fromFile } from './spec.ts'
import type { ServerConfig } from './spec.ts'
import type { McpStore, ReadServer } from './store.ts'

export interface RunningServersDeps {
  readonly settings: Settings
  readonly store: McpStore
  readonly vault: Vault
  readonly audit: Audit
  readonly features: ClientFeatures
  readonly toolSet: ToolSet
  readonly log: Logger
  readonly serverDeps: Omit<ServerDeps, 'onChanged' | 'onListed' | 'onGivenUp' | 'settings' | 'features' | 'log'>
  /** Nothing is registered any more once it aborts. */
  readonly leaving: AbortSignal
  readonly announce: (server: Server | string) => void
}

/** The servers that this daemon runs: those of the file and of the database. */
export class RunningServers {
  readonly #deps: RunningServersDeps
  readonly #servers = new Map<string, Server>()
  /** Of the servers of the database: the revision of the row that each was made from. */
  readonly #revisions = new WeakMap<Server, string>()
  #file: readonly ServerEntry[] = []
  readonly #syncs = new SerialQueue()
  readonly #changes = new KeyedQueue()
  #ended = false

  constructor(deps: RunningServersDeps) {
    this.#deps = deps
  }

  get all(): readonly Server[] {
    return [...this.#servers.values()]
  }
  get size(): number {
    return this.#servers.size
  }
  get(name: string): Server | undefined {
    return this.#servers.get(name)
  }
  /** Throws `not_found`. */
  require(name: string): Server {
    const server = this.#servers.get(name)
    if (!server) throw new Refusal('not_found', `There is no MCP server "${name}"`)
    return server
  }
  /** Runs one change of a server after the other. */
  changing<T>(name: string, change: () => Promise<T>): Promise<T> {
    return this.#changes.run(name, change)
  }

  /** Takes other servers of the file: only those that changed are stopped. */
  async replaceFile(entries: readonly ServerEntry[]): Promise<void> {
    this.setFile(entries)
    await this.sync()
  }
  /** What the file says, for the next look at it. */
  setFile(entries: readonly ServerEntry[]): void {
    this.#file = entries
  }
  /** Makes the servers those of the file and of the database, which another daemon may have changed. */
  async sync(): Promise<void> {
    await this.#syncs.run(async () => {
      if (this.#ended) return
      const rows = await this.#deps.store.servers()
      const names = new Set([...this.#servers.keys(), ...rows.map(({ name }) => name)])
      const inFile = new Set(this.#file.map(({ name }) => name))
      for (const name of inFile) await this.syncOne(name)
      // A server that is being changed here is looked at after that.
      const others = [...names].filter((name) => !inFile.has(name))
      await Promise.all(others.map((name) => this.changing(name, () => this.syncOne(name))))
      this.updateTools()
    })
  }
  async syncOne(name: string): Promise<void> {
    const running = this.#servers.get(name)
    const { config, revision } = await this.wanted(name)
    if (running && config && !this.#differs(running, config, revision)) return
    if (running) await this.drop(running, config ? 'its configuration changed' : 'was removed')
    if (running && !config) this.#deps.announce(name)
    if (!config) return
    const server = this.make(config)
    if (revision !== undefined) this.#revisions.set(server, revision)
    await this.#start(server)
  }
  /** What the file says of a server, or else its row. */
  async wanted(name: string): Promise<{ readonly config?: ServerConfig; readonly revision?: string }> {
    const entry = this.#file.find((each) => each.name === name)
    if (entry) return { config: fromFile(entry) }
    const row = await this.#deps.store.find(name)
    return row ? { config: await this.#fromRow(row), revision: row.revision } : {}
  }
  #differs(running: Server, config: ServerConfig, revision: string | undefined): boolean {
    if (this.#revisions.get(running) !== revision) return true
    return revision === undefined && canonicalJson(config) !== canonicalJson(running.config)
  }
  async #fromRow({ name, spec, origin }: ReadServer): Promise<ServerConfig> {
    const credentials = Object.fromEntries((spec.credentials ?? []).map((each) => [each, '']))
    const config = toConfig({ ...spec, credentials, name, origin })
    const secrets = await readBound(this.#deps.vault, config)
    if (!config.oauth || !areFor(secrets, config)) return config
    const { oauthClientSecret, oauthPrivateKey } = secrets
    return {
      ...config,
      oauth: { ...config.oauth, client_secret: oauthClientSecret, private_key: oauthPrivateKey },
    }
  }

  /** A server that does not run yet. One that is only tested leaves no pin and no login. */
  make(config: ServerConfig, isTest = false): Server {
    const { settings, features, log, audit } = this.#deps
    const isOurs = (server: Server): boolean => !isTest && this.#servers.get(server.name) === server
    return new Server(config, {
      ...this.#deps.serverDeps,
      settings,
      features: isTest ? { ...features, ...nothingKept } : features,
      log,
      onChanged: (server) => {
        if (!isOurs(server)) return
        this.updateTools()
        this.#deps.announce(server)
      },
      onListed: async (server) => {
        if (isOurs(server)) await this.#saveListing(server)
      },
      onGivenUp: (server, reason) => {
        log.error(`the MCP server "${server.name}" was given up: ${reason}`)
        if (!isOurs(server)) return
        audit
          .write({ event: 'mcp_server_changed', details: `${server.name} given up: ${reason}` })
          .catch((error: unknown) => log.error('an entry for the audit log was lost', error))
      },
    })
  }
  async #start(server: Server): Promise<void> {
    this.#servers.set(server.name, server)
    const { config } = server
    if (!config.enabled || this.#ended) return
    const listing = await this.#deps.store.listing(server.name, digestOf(config))
    if (listing) await server.restore(listing)
    if (config.lazy && listing) return
    server.session().catch((error: unknown) => this.#deps.log.warn(messageOf(error)))
  }
  /** Takes in a server that was tried, and is in its row with this revision. */
  async adopt(server: Server, revision: string): Promise<void> {
    this.#revisions.set(server, revision)
    this.#servers.set(server.name, server)
    if (server.listing) await this.#saveListing(server)
    this.updateTools()
    this.#deps.announce(server)
  }
  async drop(server: Server, reason: string): Promise<void> {
    if (this.#servers.get(server.name) === server) this.#servers.delete(server.name)
    await server.stop(reason)
  }
  /** Tells the tools of the agents which servers there are. */
  updateTools(): void {
    if (!this.#ended && !this.#deps.leaving.aborted) this.#deps.toolSet.update(this.all)
  }
  async #saveListing({ config, listing }: Server): Promise<void> {
    if (listing) await this.#deps.store.saveListing(config.name, digestOf(config), listing, toIso(Date.now()))
  }

  async end(): Promise<void> {
    this.#ended = true
    await Promise.all(this.all.map((server) => server.stop(ENDED)))
  }
}

/** Why the servers of a plugin that is unloaded stop. */
export const ENDED = 'is stopped: its plugin is unloaded'
const { onListed, authProvider } = noFeatures
const nothingKept = { onListed, authProvider }

function digestOf({ transport, command, args, url, tools }: ServerConfig): string {
  return createHash('sha256').update(canonicalJson({ transport, command, args, url, tools })).digest('hex')
}
