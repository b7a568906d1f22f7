import { createHash } from 'node:crypto'
import { canonicalJson, messageOf, toIso } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import { commandLine, KeyedQueue, Refusal, SerialQueue } from 'svc/sdk'
import type { Logger, Statement, Vault } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Cluster } from '../../cluster/contract.ts'
import type { ServerEntry, Settings } from '../config.ts'
import { noFeatures } from '../connection/features.ts'
import type { ClientFeatures } from '../connection/features.ts'
import type { DecideRights, McpFeatureTool, McpServerAddition, McpServers, McpServerView } from '../contract.ts'
import { serverFailed } from '../errors.ts'
import { newRevision } from './store.ts'
import type { Attempt, McpStore, ReadServer, StoredServer } from './store.ts'
import type { ToolSet } from '../tools/registry.ts'
import { toConfig } from './addition.ts'
import { hasFolder, removeFolder } from './program.ts'
import { mergeSecrets, secretsOf } from './merge-secrets.ts'
import { areFor, noSecrets, readBound, readSecrets, removeSecrets, storeSecrets } from './secrets.ts'
import type { ServerSecrets } from './secrets.ts'
import { Server } from './server.ts'
import type { ServerDeps } from './server.ts'
import { fromFile, FROM_FILE } from './spec.ts'
import type { ServerConfig } from './spec.ts'
import { toAnswer, viewOf } from './view.ts'

export interface RegistryDeps {
  readonly settings: Settings
  readonly store: McpStore
  readonly vault: Vault
  readonly daemon: Pick<Daemon, 'config'>
  readonly audit: Audit
  readonly features: ClientFeatures
  readonly toolSet: ToolSet
  readonly log: Logger
  readonly cluster: Pick<Cluster, 'self' | 'isAlive' | 'unlessAlive'>
  readonly serverDeps: Omit<ServerDeps, 'onChanged' | 'onListed' | 'onGivenUp' | 'settings' | 'features' | 'log'>
  /** Nothing is registered any more once it aborts. */
  readonly leaving: AbortSignal
  /** What the file lets the program of a server do that was added. */
  readonly rightsOf: DecideRights
  readonly announce: (server: Server | string) => void
}

/** The servers of the file and those that were added while running. */
export class ServerRegistry implements Omit<McpServers, 'decideRights'> {
  readonly #deps: RegistryDeps
  readonly #servers = new Map<string, Server>()
  /** Of the running servers of the database: the revision of the row that each was made from. */
  readonly #revisions = new WeakMap<Server, string>()
  #file: readonly ServerEntry[] = []
  readonly #syncs = new SerialQueue()
  /** Servers that are being tried, and are none of ours yet. */
  readonly #trying = new Set<Server>()
  readonly #queue = new KeyedQueue()
  /** Of servers that are being added: they are in the vault once these work. */
  readonly #newSecrets = new Map<ServerConfig, ServerSecrets>()
  /** Of servers that were added: those whose program was started unconfined. */
  readonly #operators = new WeakSet<ServerConfig>()
  #ended = false

  constructor(deps: RegistryDeps) {
    this.#deps = deps
  }

  get servers(): readonly Server[] {
    return [...this.#servers.values()]
  }

  /** Begins with the servers of the file and of the database. Those that are not lazy are connected in the background. */
  async begin(entries: readonly ServerEntry[]): Promise<void> {
    this.#file = entries
    await this.undoAbandoned()
    const { log, store } = this.#deps
    for (const { name } of await store.servers())
      if (entries.some((entry) => entry.name === name))
        log.warn(`the MCP server "${name}" of the configuration file stands for the one that was added`)
    await this.replaceFile(entries)
  }
  /** Takes other servers of the file: only those that changed are stopped. */
  async replaceFile(entries: readonly ServerEntry[]): Promise<void> {
    this.#file = entries
    await this.sync()
  }
  /** Makes the servers those of the file and of the database, which another daemon may have changed. */
  async sync(): Promise<void> {
    await this.#syncs.run(async () => {
      if (this.#ended) return
      const rows = await this.#deps.store.servers()
      const names = new Set([...this.#servers.keys(), ...rows.map(nameOf)])
      const inFile = new Set(this.#file.map(({ name }) => name))
      for (const name of inFile) await this.#syncOne(name)
      // A server that is being changed here is looked at after that.
      const others = [...names].filter((name) => !inFile.has(name))
      await Promise.all(others.map((name) => this.#queue.run(name, () => this.#syncOne(name))))
      this.#update()
    })
  }
  async #syncOne(name: string): Promise<void> {
    const running = this.#servers.get(name)
    const { config, revision } = await this.#wanted(name)
    if (running && config && !this.#differs(running, config, revision)) return
    if (running) await this.#drop(running, config ? 'its configuration changed' : 'was removed')
    if (running && !config) this.#deps.announce(name)
    if (!config) return
    const server = this.#make(config)
    if (revision !== undefined) this.#revisions.set(server, revision)
    await this.#start(server)
  }
  /** What the file says of a server, or else its row. */
  async #wanted(name: string): Promise<{ readonly config?: ServerConfig; readonly revision?: string }> {
    const entry = this.#file.find((each) => each.name === name)
    if (entry) return { config: fromFile(entry) }
    const row = await this.#deps.store.find(name)
    return row ? { config: await this.#fromRow(row), revision: row.revision } : {}
  }
  #differs(running: Server, config: ServerConfig, revision: string | undefined): boolean {
    if (this.#revisions.get(running) !== revision) return true
    return revision === undefined && canonicalJson(config) !== canonicalJson(running.config)
  }
  /** Undoes what daemons that are gone had begun. */
  async undoAbandoned(): Promise<void> {
    const { cluster, store } = this.#deps
    for (const attempt of await store.attempts()) {
      if (attempt.owner === cluster.self || cluster.isAlive(attempt.owner)) continue
      // It may have joined a moment ago.
      if (!(await isDone(store.commit(cluster.unlessAlive(attempt.owner))))) continue
      await this.#undo(attempt)
    }
  }

  async end(): Promise<void> {
    this.#ended = true
    await Promise.all(
      [...this.servers, ...this.#trying].map((server) => server.stop('is stopped: its plugin is unloaded')),
    )
  }

  async stopIdle(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stopIdle()))
  }

  list(): Promise<readonly McpServerView[]> {
    return Promise.resolve(this.servers.map((server) => this.#viewOf(server)))
  }
  find(name: string): Promise<McpServerView | undefined> {
    const server = this.#servers.get(name)
    return Promise.resolve(server && this.#viewOf(server))
  }
  featureTool(name: string, feature: McpFeatureTool): Promise<string | undefined> {
    return Promise.resolve(this.#deps.toolSet.featureTool(name, feature))
  }
  #viewOf(server: Server): McpServerView {
    const view = viewOf(server, this.#deps.toolSet)
    return this.#operators.has(server.config) ? { ...view, trust: 'operator' } : view
  }
  /** Throws `not_found`. */
  view(name: string): McpServerView {
    return this.#viewOf(this.require(name))
  }
  /** As the API answers. Throws `not_found`. */
  shown(name: string): ReturnType<typeof toAnswer> {
    return toAnswer(this.view(name))
  }
  allShown(): ReturnType<typeof toAnswer>[] {
    return this.servers.map(({ name }) => this.shown(name))
  }
  require(name: string): Server {
    const server = this.#servers.get(name)
    if (!server) throw new Refusal('not_found', `There is no MCP server "${name}"`)
    return server
  }

  add(spec: McpServerAddition): Promise<McpServerView> {
    return this.#queue.run(spec.name, async () => {
      const config = toConfig(spec)
      // Another daemon may have added it.
      if (!this.#servers.has(config.name)) await this.#syncOne(config.name)
      if (this.#servers.has(config.name))
        throw new Refusal('conflict', `There is an MCP server "${config.name}" already`)
      if (this.#servers.size + this.#trying.size >= this.#deps.settings.max_servers)
        throw new Refusal(
          'conflict',
          `There are ${this.#servers.size} MCP servers, the limit of plugins.mcp.max_servers`,
        )
      const { store } = this.#deps
      return await this.#try(bare(config), secretsOf(spec), (row) => [
        ...store.insert(row, toIso(Date.now())),
        this.#entry(`${row.name} added: ${describe(config)}`),
      ])
    })
  }

  update(name: string, spec: McpServerAddition): Promise<McpServerView> {
    return this.#queue.run(name, async () => {
      const old = this.#changeable(name)
      const known = await readSecrets(this.#deps.vault, name)
      const config = toConfig({ ...spec, name })
      const secrets = mergeSecrets({ known, old: old.config }, spec, config)
      const next = bare({
        ...config,
        headers: secrets.headers,
        credentials: Object.keys(secrets.credentials),
        ...(config.oauth && {
          oauth: {
            ...config.oauth,
            client_secret: secrets.oauthClientSecret,
            private_key: secrets.oauthPrivateKey,
          },
        }),
        origin: spec.origin ?? old.config.origin,
      })
      const { store } = this.#deps
      return await this.#try(next, secrets, (row) => [
        ...store.replace(row),
        this.#entry(`${name} changed: ${describe(next)}`),
      ])
    })
  }

  remove(name: string): Promise<void> {
    return this.#queue.run(name, async () => {
      const server = this.#changeable(name)
      const { store, vault, features } = this.#deps
      await removeSecrets(vault, name, [...store.remove(name), this.#entry(`${name} removed`)])
      await this.#drop(server, 'was removed')
      this.#update()
      await features.forget(name)
      this.#deps.announce(name)
    })
  }

  async reconnect(name: string): Promise<McpServerView> {
    const server = this.require(name)
    await server.reset('is being restarted')
    await explained(server.session(), `${commandLine(`mcp logs ${name}`)} says more`)
    return this.#viewOf(server)
  }

  async client(name: string): ReturnType<McpServers['client']> {
    return await this.require(name).session()
  }

  async test(spec: McpServerAddition): ReturnType<McpServers['test']> {
    const config = bare({ ...toConfig(spec), enabled: true })
    const server = this.#make(config, true)
    const { homeDir } = this.#deps.daemon.config()
    const hadFolder = await hasFolder(homeDir, config.name)
    this.#newSecrets.set(config, secretsOf(spec))
    this.#trying.add(server)
    try {
      const session = await explained(
        server.session().catch((error: unknown) => {
          if (server.state !== 'login_required') throw error
          throw new Refusal(serverFailed, `the MCP server "${config.name}" wants a login: add it, then log in`, {
            cause: error,
          })
        }),
      )
      return {
        serverInfo: session.serverInfo,
        protocolVersion: session.protocolVersion,
        tools: server.listing?.tools ?? [],
      }
    } finally {
      this.#trying.delete(server)
      this.#newSecrets.delete(config)
      await server.stop('was only tested')
      if (!hadFolder) await removeFolder(homeDir, config.name)
    }
  }

  /** A server as its program is started now: what widens its rights is not in its row, it comes from the file. */
  async withRights(config: ServerConfig): Promise<ServerConfig> {
    if (config.origin === FROM_FILE) return config
    const { name, origin, command = '', args, env, credentials } = config
    const rights = await this.#deps.rightsOf({ name, origin, command, args, env: [...env, ...credentials] })
    if (rights.trust === 'operator') this.#operators.add(config)
    else this.#operators.delete(config)
    return {
      ...config,
      trust: rights.trust ?? 'confined',
      read: [...(rights.read ?? [])],
      write: [...(rights.write ?? [])],
    }
  }
  /**
   * The secrets of a server, for its headers and its program. Throws `conflict` when its row says another receiver than
   * the one they were entered for.
   */
  async secretsFor(config: ServerConfig): Promise<ServerSecrets> {
    const tried = this.#newSecrets.get(config)
    if (tried) return tried
    if (config.origin === FROM_FILE) return { ...noSecrets, headers: config.headers }
    const secrets = await readSecrets(this.#deps.vault, config.name)
    if (areFor(secrets, config)) return secrets
    throw new Refusal(
      'conflict',
      `the row of the MCP server "${config.name}" says another program or address than its secrets were entered for. ` +
        'Somebody changed it in the database: change the server with their values entered again, or remove it',
    )
  }

  /** Connects to a new server; it is stored and takes the place of the old one when that worked. */
  async #try(
    config: ServerConfig,
    secrets: ServerSecrets,
    statements: (row: StoredServer) => readonly Statement[],
  ): Promise<McpServerView> {
    const { features, store } = this.#deps
    const row = { name: config.name, spec: stored(config), origin: config.origin, revision: newRevision() }
    const server = this.#make(config)
    const old = this.#servers.get(config.name)
    const attempt = await this.#attempt(config)
    this.#newSecrets.set(config, secrets)
    this.#trying.add(server)
    try {
      if (config.enabled)
        await explained(
          server.session().catch((error: unknown) => {
            if (server.state !== 'login_required') throw error
            return undefined
          }),
        )
      if (this.#servers.get(config.name) !== old) throw replaced(config.name)
      await storeSecrets(this.#deps.vault, config, secrets, [...statements(row), store.endAttempt(config.name)])
    } catch (error) {
      this.#trying.delete(server)
      await server.stop('could not be added')
      await this.#undo(attempt)
      throw error
    } finally {
      this.#trying.delete(server)
      this.#newSecrets.delete(config)
    }
    if (this.#servers.get(config.name) !== old) {
      // It is stored, and runs when the file names it no more.
      await server.stop('stands in the configuration file now')
      throw replaced(config.name)
    }
    if (old) {
      await this.#drop(old, 'its configuration changed')
      await features.kept(config)
    }
    this.#revisions.set(server, row.revision)
    this.#servers.set(config.name, server)
    if (server.listing) await this.#saveListing(server)
    this.#update()
    this.#deps.announce(server)
    return this.#viewOf(server)
  }

  /** On disk before anything of a new server is: what the end of the process cuts off is undone when it starts again. */
  async #attempt({ name, url }: ServerConfig): Promise<Attempt> {
    const { cluster, store, daemon } = this.#deps
    if (!this.#servers.has(name) && (await store.has(name)))
      throw new Refusal('conflict', `The database has an MCP server "${name}" already, which this daemon does not run`)
    const isNew = !(await hasFolder(daemon.config().homeDir, name))
    const attempt = { name, url: url ?? null, new_folder: isNew ? 1 : 0, owner: cluster.self }
    await store.commit([store.beginAttempt(attempt)])
    return attempt
  }
  /** Removes what an attempt left. What the server has that is used stays. */
  async #undo({ name, url, new_folder: isNew }: Attempt): Promise<void> {
    const { features, store, daemon } = this.#deps
    const { config: used } = await this.#wanted(name)
    // What belongs to a row that cannot be read is not what an attempt left.
    if (!used && (await store.has(name))) return
    if (!used) await features.forget(name)
    else if (url !== null && used.url !== url) await features.dropped({ name, url })
    // The file may name one of this name since.
    if (isNew === 1 && used?.transport !== 'stdio') await removeFolder(daemon.config().homeDir, name)
    await store.commit([store.endAttempt(name)])
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
  #make(config: ServerConfig, isTest = false): Server {
    const { settings, features, log, audit } = this.#deps
    const isOurs = (server: Server): boolean => !isTest && this.#servers.get(server.name) === server
    return new Server(config, {
      ...this.#deps.serverDeps,
      settings,
      // A server that is only tested leaves no pin and no login.
      features: isTest ? { ...features, ...nothingKept } : features,
      log,
      onChanged: (server) => {
        if (!isOurs(server)) return
        this.#update()
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

  async #drop(server: Server, reason: string): Promise<void> {
    if (this.#servers.get(server.name) === server) this.#servers.delete(server.name)
    await server.stop(reason)
  }
  #update(): void {
    if (!this.#ended && !this.#deps.leaving.aborted) this.#deps.toolSet.update(this.servers)
  }
  async #saveListing({ config, listing }: Server): Promise<void> {
    if (listing) await this.#deps.store.saveListing(config.name, digestOf(config), listing, toIso(Date.now()))
  }
  #changeable(name: string): Server {
    const server = this.require(name)
    if (server.config.origin === FROM_FILE)
      throw new Refusal(
        'conflict',
        `The MCP server "${name}" stands in [[mcp_servers]] of the configuration file: change it there`,
      )
    return server
  }
  #entry(details: string): Statement {
    return this.#deps.audit.entry({ event: 'mcp_server_changed', details })
  }
}

const nameOf = ({ name }: StoredServer): string => name
const isDone = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  )
const { onListed, authProvider } = noFeatures
const nothingKept = { onListed, authProvider }

/** As it is stored: without values that belong into the vault. */
const bare = (config: ServerConfig): ServerConfig => ({
  ...config,
  headers: Object.fromEntries(Object.keys(config.headers).map((name) => [name, ''])),
})
/** The row of a server. */
const stored = ({ oauth, ...config }: ServerConfig): object => ({
  ...config,
  ...(oauth && { oauth: { ...oauth, client_secret: undefined, private_key: undefined } }),
})
function describe({ transport, command, args, url }: ServerConfig): string {
  return transport === 'stdio' ? `${transport} ${[command, ...args].join(' ')}` : `${transport} ${url ?? ''}`
}
function digestOf({ transport, command, args, url, tools }: ServerConfig): string {
  return createHash('sha256').update(canonicalJson({ transport, command, args, url, tools })).digest('hex')
}

/** The file was read while a server was tried. */
const replaced = (name: string): Refusal =>
  new Refusal('conflict', `The MCP server "${name}" stands in [[mcp_servers]] of the configuration file now`)

/** The failure of a server as the answer to the request that needed it. */
async function explained<T>(work: Promise<T>, advice?: string): Promise<T> {
  try {
    return await work
  } catch (error) {
    // Such as a program that is not on this machine, or an address that is closed.
    const refusal = error instanceof Error ? refusalBehind(error.cause) : undefined
    if (refusal) {
      const { code, message } = refusal
      throw code === 'invalid_request' ? new Refusal('conflict', message, { cause: error }) : refusal
    }
    if (error instanceof Error && error.name === 'UpstreamFailure')
      throw new Refusal(serverFailed, withAdvice(error.message, advice), { cause: error })
    throw error
  }
}

function withAdvice(message: string, advice: string | undefined): string {
  if (advice === undefined) return message
  // What the program wrote stands in lines of its own.
  return `${message}${message.includes('\n') ? '\n' : '. '}${advice}`
}

/** The libraries wrap what refused a request. */
function refusalBehind(cause: unknown): Refusal | undefined {
  if (cause instanceof Refusal) return cause
  return cause instanceof Error ? refusalBehind(cause.cause) : undefined
}
