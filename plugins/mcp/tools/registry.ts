import type { AnyTool, Tools } from 'svc/sdk'
import type { Settings } from '../config.ts'
import type { ClientFeatures, ExtraTool } from '../connection/features.ts'
import type { Server } from '../servers/server.ts'
import { nameTools } from './names.ts'
import { serverTool } from './tool.ts'

export interface ToolSetDeps {
  readonly tools: Tools
  readonly features: ClientFeatures
  readonly settings: Settings
  readonly counted: (server: string, outcome: 'ok' | 'error' | 'failed') => void
}
interface Entry {
  readonly server: string
  readonly tool: string
  readonly extra: ExtraTool | undefined
}
interface ToolsOfServer {
  readonly server: string
  /** Changes with the tools. */
  readonly key: string
  readonly tools: () => readonly AnyTool[]
}
export const sourceOf = (server: string): string => `mcp:${server}`

/** The tools of all servers among those of the daemon. */
export class ToolSet {
  readonly #deps: ToolSetDeps
  /** What is registered of each server, as a text that changes with it. */
  readonly #registered = new Map<string, string>()
  /** By server and name on the server. */
  #names: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map()
  /** By server and suffix: the tools for resources and prompts. */
  #features: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map()
  /** The servers with their revisions that it registered last. */
  #current: string | undefined
  readonly #entries = new WeakMap<Server, { readonly revision: number; readonly entries: readonly Entry[] }>()
  constructor(deps: ToolSetDeps) {
    this.#deps = deps
  }

  /** The name that agents call a tool by, also of one that is not usable. */
  nameOf(server: string, tool: string): string | undefined {
    return this.#names.get(server)?.get(tool)
  }

  featureTool(server: string, suffix: string): string | undefined {
    return this.#features.get(server)?.get(suffix)
  }

  /**
   * Registers what the servers list now. Names are given in the order of the servers' names, so that they do not depend
   * on which server was the first to answer. Costs nothing while no server lists anything else, such as when one only
   * connects.
   */
  update(servers: readonly Server[]): void {
    const sorted = servers.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    const current = sorted.map(({ name, revision }) => `${name} ${revision}`).join(',')
    if (current === this.#current) return
    this.#updateTo(sorted)
    this.#current = current
  }

  #updateTo(sorted: readonly Server[]): void {
    const own = new Set([...this.#registered.keys()].map(sourceOf))
    const entries = sorted.flatMap((server) => this.#entriesOf(server))
    const isTaken = (name: string): boolean => {
      const other = this.#deps.tools.find(name)
      return other !== undefined && !own.has(other.source ?? '')
    }
    const names = nameTools(
      entries,
      sorted.map(({ name }) => name),
      isTaken,
    )
    const named = new Map(sorted.map(({ name }) => [name, [] as [string, Entry][]]))
    for (const [name, entry] of names) named.get(entry.server)?.push([name, entry])
    const namesOf = (isFeature: boolean): ReadonlyMap<string, ReadonlyMap<string, string>> =>
      new Map(
        [...named].map(([server, list]) => [
          server,
          new Map(
            list.flatMap(([name, { tool, extra }]) => (isFeature === (extra !== undefined) ? [[tool, name]] : [])),
          ),
        ]),
      )
    this.#names = namesOf(false)
    this.#features = namesOf(true)
    this.#register(
      sorted.map((server) => {
        const list = named.get(server.name) ?? []
        return {
          server: server.name,
          key: `${server.revision} ${list.map(([name, { tool }]) => `${name}=${tool}`).join(' ')}`,
          tools: () => this.#toolsOf(server, list),
        }
      }),
    )
  }

  #entriesOf(server: Server): readonly Entry[] {
    const known = this.#entries.get(server)
    if (known?.revision === server.revision) return known.entries
    const entries = [
      ...server.tools.map(({ tool }) => ({ server: server.name, tool: tool.name, extra: undefined })),
      ...this.#extrasOf(server).map((extra) => ({ server: server.name, tool: extra.suffix, extra })),
    ]
    this.#entries.set(server, { revision: server.revision, entries })
    return entries
  }
  #extrasOf(server: Server): readonly ExtraTool[] {
    if (!server.config.enabled || !server.listing) return []
    return this.#deps.features.extraTools({
      server: server.config,
      capabilities: server.listing.capabilities,
      connect: (signal) => server.session(signal),
    })
  }
  #toolsOf(server: Server, named: readonly (readonly [string, Entry])[]): readonly AnyTool[] {
    const listed = new Map(server.tools.map((each) => [each.tool.name, each]))
    if (!server.config.enabled) return []
    return named.flatMap(([name, { tool, extra }]): readonly AnyTool[] => {
      if (extra) return [{ ...extra.tool, name }]
      const found = listed.get(tool)
      return found?.usable ? [serverTool({ ...this.#deps, server }, name, found.tool)] : []
    })
  }

  /** Sets what is different. It is taken away everywhere first: a name may move from one server to another. */
  #register(sets: readonly ToolsOfServer[]): void {
    const { tools } = this.#deps
    const keys = new Map(sets.map(({ server, key }) => [server, key]))
    for (const server of this.#registered.keys()) {
      if (keys.get(server) === this.#registered.get(server)) continue
      tools.set(sourceOf(server), [])
      this.#registered.delete(server)
    }
    for (const { server, key, tools: make } of sets) {
      if (this.#registered.has(server)) continue
      tools.set(sourceOf(server), make())
      this.#registered.set(server, key)
    }
  }
}
