import { H3 } from 'h3'
import type { H3Event } from 'h3'
import type { Scope } from '../scope/scope.ts'
import { compilePattern, matchPattern } from './pattern.ts'
import type { Pattern } from './pattern.ts'
import type { AnyRoute, AnySocketRoute } from './route.ts'

export interface Entry { readonly route: AnyRoute; readonly scope: Scope; readonly pattern: Pattern }
export interface SocketEntry { readonly route: AnySocketRoute; readonly scope: Scope; readonly pattern: Pattern }

type Handler = (event: H3Event, entry: Entry | undefined) => unknown

/**
 * The live routes. h3 can neither refuse a duplicate nor take a route back reliably, so the table is ours, and a fresh router is made
 * from it when it changed: lazily, because a plugin adds its routes one by one.
 */
export class RouteTable {
  #entries = new Map<string, Entry>()
  #sockets = new Map<string, SocketEntry>()
  /** Routes that were live when a hold began and whose plugin is away meanwhile. */
  #ghosts = new Map<string, Entry>()
  #app: H3 | undefined
  #handler: Handler
  /** Counts changes. */
  version = 0

  constructor(handler: Handler) { this.#handler = handler }

  add(scope: Scope, route: AnyRoute): void {
    const pattern = compilePattern(route.path)
    const key = `${route.method} ${pattern.shape}`
    const taken = this.#entries.get(key)
    if (taken) throw new Error(`route ${route.method} ${route.path} of plugin "${scope.name}" is taken by "${taken.scope.name}" (${taken.route.path})`)
    this.#entries.set(key, { route, scope, pattern })
    this.#changed()
    scope.own('route', `${route.method} ${route.path}`, () => { this.#entries.delete(key); this.#changed() })
  }

  addSocket(scope: Scope, route: AnySocketRoute): void {
    const pattern = compilePattern(route.path)
    const taken = this.#sockets.get(pattern.shape)
    if (taken) throw new Error(`socket ${route.path} of plugin "${scope.name}" is taken by "${taken.scope.name}" (${taken.route.path})`)
    this.#sockets.set(pattern.shape, { route, scope, pattern })
    this.#changed()
    scope.own('route', `WebSocket ${route.path}`, () => { this.#sockets.delete(pattern.shape); this.#changed() })
  }

  /** Keeps the present routes of these plugins matchable until the returned function is called. */
  keep(plugins: ReadonlySet<string>): () => void {
    const kept = [...this.#entries].filter(([, entry]) => plugins.has(entry.scope.name))
    for (const [key, entry] of kept) this.#ghosts.set(key, entry)
    return () => {
      for (const [key, entry] of kept) if (this.#ghosts.get(key) === entry) this.#ghosts.delete(key)
      this.#changed()
    }
  }

  /** The router of the present table. */
  app(): H3 { return (this.#app ??= this.#build()) }

  routes(): readonly AnyRoute[] { return [...this.#entries.values()].map((entry) => entry.route) }
  sockets(): readonly AnySocketRoute[] { return [...this.#sockets.values()].map((entry) => entry.route) }
  entries(): readonly Entry[] { return [...this.#entries.values()] }
  socketEntries(): readonly SocketEntry[] { return [...this.#sockets.values()] }

  /** The methods a path answers to, for 405 and OPTIONS. Slow, and needed only there. */
  methods(path: string): readonly string[] {
    const found = new Set<string>()
    for (const entry of this.#entries.values()) if (matchPattern(entry.pattern, path)) found.add(entry.route.method)
    if (found.has('GET')) found.add('HEAD')
    return [...found]
  }

  /** The socket route of a path: the one with the most literal segments first. */
  findSocket(path: string): { readonly entry: SocketEntry; readonly params: Record<string, string> } | undefined {
    let best: { entry: SocketEntry; params: Record<string, string> } | undefined
    const literal = (pattern: Pattern): number => pattern.segments.filter((segment) => segment.kind === 'text').length
    for (const entry of this.#sockets.values()) {
      const params = matchPattern(entry.pattern, path)
      if (params && (!best || literal(entry.pattern) > literal(best.entry.pattern))) best = { entry, params }
    }
    return best
  }

  #changed(): void { this.version++; this.#app = undefined }

  #build(): H3 {
    const app = new H3({ silent: true, onError: (_error, event) => this.#handler(event, undefined) })
    for (const [key, entry] of this.#ghosts) if (!this.#entries.has(key)) app.on(entry.route.method, entry.route.path, (event) => this.#handler(event, entry))
    for (const entry of this.#entries.values()) app.on(entry.route.method, entry.route.path, (event) => this.#handler(event, entry))
    return app
  }
}
