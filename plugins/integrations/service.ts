import { findNearest, messageOf, suggest, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { KeyedQueue, Refusal } from 'svc/sdk'
import type { Hooks, Logger } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Cluster } from '../cluster/contract.ts'
import type { McpProgram, McpProgramRights, McpServers, McpServerView } from '../mcp/contract.ts'
import { rightsOf, toAddition } from './addition.ts'
import type { AdditionDeps } from './addition.ts'
import { readCatalog } from './catalog/index.ts'
import type { Catalog, CatalogOptions } from './catalog/index.ts'
import type { Template } from './catalog/template.ts'
import type { IntegrationRequest, IntegrationState } from './contract.ts'
import { IntegrationChanged } from './contract.ts'
import type { Checked, HealthMonitor } from './health.ts'
import type { Installed, InstalledStore } from './store.ts'
import { readVariables } from './variables.ts'

export interface ServiceDeps {
  readonly store: InstalledStore
  readonly servers: McpServers
  readonly monitor: HealthMonitor
  readonly audit: Audit
  readonly cluster: Pick<Cluster, 'self' | 'isAlive' | 'unlessAlive'>
  readonly hooks: Pick<Hooks, 'emit'>
  readonly log: Logger
  readonly clock: Clock
  readonly catalog: CatalogOptions
  readonly addition: AdditionDeps
}
/** One that was added; its template is `undefined` when the file of the operator with it is gone. */
export interface Integration {
  readonly installed: Installed
  readonly template: Template | undefined
  readonly server: McpServerView | undefined
  readonly state: IntegrationState
}

const MAX_ID_CHARS = 32
const DEFAULT_CHECK = { interval_secs: 60, unhealthy_threshold: 3 }

/** Adds and removes integrations. Each is an MCP server of the same name, whose secrets the plugin mcp keeps. */
export class IntegrationService {
  readonly #deps: ServiceDeps
  /** Changes of one integration happen one after the other. */
  readonly #changes = new KeyedQueue()
  constructor(deps: ServiceDeps) {
    this.#deps = deps
  }

  catalog(): Promise<Catalog> {
    return readCatalog(this.#deps.catalog)
  }
  async list(): Promise<readonly Integration[]> {
    const { templates } = await this.catalog()
    const servers = new Map((await this.#deps.servers.list()).map((view) => [view.name, view]))
    return (await this.#deps.store.list()).map((installed) =>
      this.#join(installed, templates.get(installed.template), servers.get(installed.id)),
    )
  }
  async find(id: string): Promise<Integration | undefined> {
    const installed = await this.#deps.store.find(id)
    if (installed?.state !== 'installed') return undefined
    const { templates } = await this.catalog()
    return this.#join(installed, templates.get(installed.template), await this.#deps.servers.find(id))
  }
  /** Throws `integration_not_found`. */
  async require(id: string): Promise<Integration> {
    const found = await this.find(id)
    if (found) return found
    const ids = (await this.#deps.store.list()).map((each) => each.id)
    const { templates } = await this.catalog()
    const hint = templates.has(id) ? '; it is in the catalogue and was not added' : suggest(findNearest(id, ids))
    throw new Refusal('integration_not_found', `No integration "${id}"${hint}`)
  }
  /** What the file lets a program do. One that is not that of its template has no more than any other. */
  async rightsOf(program: McpProgram): Promise<McpProgramRights> {
    const { templates } = await this.catalog()
    const template = templates.get(program.origin.slice(program.origin.indexOf(':') + 1))
    const rights = template && rightsOf(template, program, this.#deps.addition)
    if (rights) return rights
    this.#deps.log.warn(
      `the program of the integration "${program.name}" is not the one that its template starts: ` +
        'it has no rights of plugins.integrations. Remove it and add it again',
    )
    return {}
  }
  /** An entry of the catalogue. Throws `template_not_found`. */
  async template(id: string): Promise<Template> {
    const { templates } = await this.catalog()
    const template = templates.get(id)
    if (template) return template
    throw new Refusal(
      'template_not_found',
      `No integration "${id}" in the catalogue${suggest(findNearest(id, templates.keys()))}`,
    )
  }

  /**
   * Settles when its MCP server works or waits for a login. Throws `template_not_found`, `invalid_request` for variables,
   * `conflict`, or what the server does wrong; then nothing of it is left.
   */
  async add(request: IntegrationRequest): Promise<Integration> {
    const template = await this.template(request.template)
    const name = request.name?.trim() || template.name
    const id = request.name === undefined ? template.id : toId(request.name)
    const entered = readVariables(template, request)
    return this.#changes.run(id, async () => {
      await this.#refuseTaken(id)
      const addition = toAddition(id, template, entered, this.#deps.addition)
      const installed: Installed = {
        id,
        template: template.id,
        name,
        state: 'adding',
        installed_at: toIso(this.#deps.clock.now()),
        owner: this.#deps.cluster.self,
      }
      return this.#join(installed, template, await this.#addServer(installed, addition))
    })
  }

  async #refuseTaken(id: string): Promise<void> {
    const { store, servers } = this.#deps
    if (await store.find(id))
      throw new Refusal('conflict', `There is an integration "${id}" already: give another name, or remove it`)
    if (await servers.find(id))
      throw new Refusal('conflict', `There is an MCP server "${id}" already: give another name, or remove it`)
  }

  async #addServer(installed: Installed, addition: Parameters<McpServers['add']>[0]): Promise<McpServerView> {
    const { cluster, store, servers, audit, monitor } = this.#deps
    const { id, template } = installed
    // A row first: what the end of the process cuts off here is found by `recover`.
    await store.commit([store.insert(installed)])
    let server: McpServerView
    try {
      server = await servers.add(addition)
    } catch (error) {
      await store.commit([store.remove(id)])
      throw error
    }
    const details = `integration "${id}" (${template}) added`
    await store.commit([
      store.setState(id, 'installed', cluster.self),
      audit.entry({ event: 'integration_changed', details }),
    ])
    if (server.state === 'connected') await monitor.succeeded(id)
    await this.#announce(installed, 'added')
    return server
  }

  /** Removes its MCP server with its secrets. Throws `integration_not_found`. */
  async remove(id: string): Promise<void> {
    await this.#changes.run(id, async () => {
      const { installed } = await this.require(id)
      const { cluster, store } = this.#deps
      await store.commit([store.setState(id, 'removing', cluster.self)])
      try {
        await this.#endServer(id)
      } catch (error) {
        await store.commit([store.setState(id, 'installed', cluster.self)])
        throw error
      }
      await this.#forget(installed, `integration "${id}" (${installed.template}) removed`)
    })
  }
  async #endServer(id: string): Promise<void> {
    const { servers } = this.#deps
    if (await servers.find(id)) await servers.remove(id)
  }
  async #forget(installed: Installed, details: string): Promise<void> {
    const { store, audit, monitor } = this.#deps
    await store.commit([store.remove(installed.id), audit.entry({ event: 'integration_changed', details })])
    monitor.forget(installed.id)
    await this.#announce(installed, 'removed')
  }

  /** Somebody removed the MCP server of an integration. */
  async serverRemoved(id: string): Promise<void> {
    await this.#changes.run(id, async () => {
      const installed = await this.#deps.store.find(id)
      if (installed?.state !== 'installed' || (await this.#deps.servers.find(id))) return
      await this.#forget(installed, `integration "${id}" (${installed.template}) removed with its MCP server`)
    })
  }

  /** Connects again, also after it was given up. Throws `integration_not_found`, or what the server does wrong. */
  async reconnect(id: string): Promise<Integration> {
    const { installed, template } = await this.require(id)
    const server = await this.#reconnectServer(id)
    if (server.state === 'connected') await this.#deps.monitor.succeeded(id)
    return this.#join(installed, template, server)
  }

  async #reconnectServer(id: string): Promise<McpServerView> {
    const { servers } = this.#deps
    try {
      return await servers.reconnect(id)
    } catch (error) {
      // It is there, and waits for a person.
      const server = await servers.find(id)
      if (server?.state === 'login_required') return server
      throw error
    }
  }

  /** Connects those again that do not work. Returns how many then did. */
  async reconnectFailed(): Promise<number> {
    const failed = (await this.list()).filter(({ state }) => state === 'error')
    const outcomes = await Promise.allSettled(failed.map(({ installed }) => this.reconnect(installed.id)))
    return outcomes.filter((one) => one.status === 'fulfilled' && one.value.state === 'ready').length
  }

  /** Ends what the end of another process cut off: an earlier one, or that of another daemon on the database. */
  async recover(): Promise<void> {
    const { store, log } = this.#deps
    for (const { id, state, owner } of await store.all()) {
      if (state === 'installed' || this.#isAtWork(owner)) continue
      try {
        await this.#changes.run(id, () => this.#recoverOne(id))
      } catch (error) {
        log.warn(`the integration "${id}" is still being ${state === 'adding' ? 'added' : 'removed'}`, {
          error: messageOf(error),
        })
      }
    }
  }
  async #recoverOne(id: string): Promise<void> {
    const { store } = this.#deps
    const row = await store.find(id)
    if (!row || row.state === 'installed' || this.#isAtWork(row.owner)) return
    // It may have joined a moment ago.
    if (row.owner !== null) await store.commit(this.#deps.cluster.unlessAlive(row.owner))
    // Nobody was told that it was added: without this the caller who tries again is refused.
    await this.#endServer(id)
    const details = `integration "${id}" (${row.template}) removed: its ${row.state} was cut off`
    await this.#forget(row, details)
  }

  /** Whether another daemon is adding or removing it. */
  #isAtWork(owner: string | null): boolean {
    const { cluster } = this.#deps
    return owner !== null && owner !== cluster.self && cluster.isAlive(owner)
  }

  /** What is checked, and how. */
  async checked(): Promise<readonly Checked[]> {
    const { templates } = await this.catalog()
    return (await this.#deps.store.list()).map(({ id, template }) => toChecked(id, templates.get(template)))
  }

  #join(installed: Installed, template: Template | undefined, server: McpServerView | undefined): Integration {
    const isFailing = this.#deps.monitor.isUnhealthy(toChecked(installed.id, template))
    return { installed, template, server, state: stateOf(server, isFailing) }
  }
  async #announce({ id, template }: Installed, change: 'added' | 'removed'): Promise<void> {
    await this.#deps.hooks.emit(IntegrationChanged, { id, template, change, error: null })
  }
}

function toChecked(id: string, template: Template | undefined): Checked {
  const { interval_secs: intervalSecs, unhealthy_threshold: threshold } = template?.health_check ?? DEFAULT_CHECK
  return { id, intervalSecs, threshold }
}

function stateOf(server: McpServerView | undefined, isFailing: boolean): IntegrationState {
  if (server === undefined || server.state === 'error') return 'error'
  if (server.state === 'login_required') return 'setup'
  if (server.state === 'disabled') return 'disabled'
  return isFailing ? 'error' : 'ready'
}

/** The id of an integration that a person gave a name. */
function toId(name: string): string {
  const id = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_ID_CHARS)
    .replaceAll(/^-+|-+$/g, '')
  if (id === '') throw new Refusal('invalid_request', 'name: expected a name with letters or digits')
  return id
}
