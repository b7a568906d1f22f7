import { toIso } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Cluster } from '../../cluster/contract.ts'
import type { ServerEntry } from '../config.ts'
import type { DecideRights, McpFeatureTool, McpServerAddition, McpServers, McpServerView } from '../contract.ts'
import { serverFailed } from '../errors.ts'
import { newRevision } from './store.ts'
import type { Attempt, StoredServer } from './store.ts'
import { toConfig } from './addition.ts'
import { explained } from './failures.ts'
import { hasFolder, removeFolder } from './program.ts'
import { mergeSecrets, secretsOf } from './merge-secrets.ts'
import { ENDED, RunningServers } from './running-servers.ts'
import type { RunningServersDeps } from './running-servers.ts'
import { areFor, noSecrets, readSecrets, removeSecrets, storeSecrets } from './secrets.ts'
import type { ServerSecrets } from './secrets.ts'
import type { Server } from './server.ts'
import { FROM_FILE } from './spec.ts'
import type { ServerConfig } from './spec.ts'
import { toAnswer, viewOf } from './view.ts'

export interface RegistryDeps extends RunningServersDeps {
  readonly daemon: Pick<Daemon, 'config'>
  readonly cluster: Pick<Cluster, 'self' | 'isAlive' | 'unlessAlive'>
  /** What the file lets the program of a server do that was added. */
  readonly rightsOf: DecideRights
}

/** The servers of the file and those that were added: what the API and the command line do with them. */
export class ServerRegistry implements Omit<McpServers, 'decideRights'> {
  readonly #deps: RegistryDeps
  readonly #running: RunningServers
  /** Servers that are being tried, and are none of ours yet. */
  readonly #trying = new Set<Server>()
  /** Of servers that are being added: they are in the vault once these work. */
  readonly #newSecrets = new Map<ServerConfig, ServerSecrets>()
  /** Of servers that were added: those whose program was started unconfined. */
  readonly #operators = new WeakSet<ServerConfig>()

  constructor(deps: RegistryDeps) {
    this.#deps = deps
    this.#running = new RunningServers(deps)
  }

  get servers(): readonly Server[] {
    return this.#running.all
  }

  /** Begins with the servers of the file and of the database. Those that are not lazy are connected in the background. */
  async begin(entries: readonly ServerEntry[]): Promise<void> {
    this.#running.setFile(entries)
    await this.undoAbandoned()
    const { log, store } = this.#deps
    for (const { name } of await store.servers())
      if (entries.some((entry) => entry.name === name))
        log.warn(`the MCP server "${name}" of the configuration file stands for the one that was added`)
    await this.replaceFile(entries)
  }
  /** Takes other servers of the file: only those that changed are stopped. */
  async replaceFile(entries: readonly ServerEntry[]): Promise<void> {
    await this.#running.replaceFile(entries)
  }
  /** Makes the servers those of the file and of the database, which another daemon may have changed. */
  async sync(): Promise<void> {
    await this.#running.sync()
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
    await Promise.all([this.#running.end(), ...[...this.#trying].map((server) => server.stop(ENDED))])
  }

  async stopIdle(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stopIdle()))
  }

  list(): Promise<readonly McpServerView[]> {
    return Promise.resolve(this.servers.map((server) => this.#viewOf(server)))
  }
  find(name: string): Promise<McpServerView | undefined> {
    const server = this.#running.get(name)
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
  /** Throws `not_found`. */
  require(name: string): Server {
    return this.#running.require(name)
  }

  add(spec: McpServerAddition): Promise<McpServerView> {
    return this.#running.changing(spec.name, async () => {
      const config = toConfig(spec)
      // Another daemon may have added it.
      if (!this.#running.get(config.name)) await this.#running.syncOne(config.name)
      if (this.#running.get(config.name))
        throw new Refusal('conflict', `There is an MCP server "${config.name}" already`)
      if (this.#running.size + this.#trying.size >= this.#deps.settings.max_servers)
        throw new Refusal(
          'conflict',
          `There are ${this.#running.size} MCP servers, the limit of plugins.mcp.max_servers`,
        )
      const { store } = this.#deps
      return await this.#try(bare(config), secretsOf(spec), (row) => [
        ...store.insert(row, toIso(Date.now())),
        this.#entry(`${row.name} added: ${describe(config)}`),
      ])
    })
  }

  update(name: string, spec: McpServerAddition): Promise<McpServerView> {
    return this.#running.changing(name, async () => {
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
    return this.#running.changing(name, async () => {
      const server = this.#changeable(name)
      const { store, vault, features } = this.#deps
      await removeSecrets(vault, name, [...store.remove(name), this.#entry(`${name} removed`)])
      await this.#running.drop(server, 'was removed')
      this.#running.updateTools()
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
    const server = this.#running.make(config, true)
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
    const server = this.#running.make(config)
    const old = this.#running.get(config.name)
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
      if (this.#running.get(config.name) !== old) throw replaced(config.name)
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
    if (this.#running.get(config.name) !== old) {
      // It is stored, and runs when the file names it no more.
      await server.stop('stands in the configuration file now')
      throw replaced(config.name)
    }
    if (old) {
      await this.#running.drop(old, 'its configuration changed')
      await features.kept(config)
    }
    await this.#running.adopt(server, row.revision)
    return this.#viewOf(server)
  }

  /** On disk before anything of a new server is: what the end of the process cuts off is undone when it starts again. */
  async #attempt({ name, url }: ServerConfig): Promise<Attempt> {
    const { cluster, store, daemon } = this.#deps
    if (!this.#running.get(name) && (await store.has(name)))
      throw new Refusal('conflict', `The database has an MCP server "${name}" already, which this daemon does not run`)
    const isNew = !(await hasFolder(daemon.config().homeDir, name))
    const attempt = { name, url: url ?? null, new_folder: isNew ? 1 : 0, owner: cluster.self }
    await store.commit([store.beginAttempt(attempt)])
    return attempt
  }
  /** Removes what an attempt left. What the server has that is used stays. */
  async #undo({ name, url, new_folder: isNew }: Attempt): Promise<void> {
    const { features, store, daemon } = this.#deps
    const { config: used } = await this.#running.wanted(name)
    // What belongs to a row that cannot be read is not what an attempt left.
    if (!used && (await store.has(name))) return
    if (!used) await features.forget(name)
    else if (url !== null && used.url !== url) await features.dropped({ name, url })
    // The file may name one of this name since.
    if (isNew === 1 && used?.transport !== 'stdio') await removeFolder(daemon.config().homeDir, name)
    await store.commit([store.endAttempt(name)])
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

const isDone = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  )
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
/** The file was read while a server was tried. */
const replaced = (name: string): Refusal =>
  new Refusal('conflict', `The MCP server "${name}" stands in [[mcp_servers]] of the configuration file now`)
