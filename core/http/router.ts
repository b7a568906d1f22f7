import { addRoute, createRouter, findRoute } from 'rou3'
import type { MatchedRoute, RouterContext } from 'rou3'
import { effects } from '../auth/authority.ts'
import type { Scope } from '../scope/scope.ts'
import type { Answer } from './answer.ts'
import { compilePattern, matchPattern } from './pattern.ts'
import type { Pattern } from './pattern.ts'
import type { RoutedRequest } from './pipeline.ts'
import type { AnyRoute, AnySocketRoute, Method } from './route.ts'

export interface Entry {
  readonly route: AnyRoute
  readonly scope: Scope
  readonly pattern: Pattern
}
export interface SocketEntry {
  readonly route: AnySocketRoute
  readonly scope: Scope
  readonly pattern: Pattern
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

type Handler = (routed: RoutedRequest, entry: Entry | undefined) => Answer | Promise<Answer>

/**
 * The live routes. The router cannot refuse a duplicate, so this table holds them, and a new router is created from it
 * after a change: lazily, because a plugin adds its routes one by one.
 */
export class RouteTable {
  #entries = new Map<string, Entry>()
  #sockets = new Map<string, SocketEntry>()
  /** Routes of plugins that are being replaced. They match until the hold ends. */
  #held = new Map<string, Entry>()
  #router: RouterContext<Entry> | undefined
  #handler: Handler
  /** Counts changes. */
  version = 0

  constructor(handler: Handler) {
    this.#handler = handler
  }

  add(scope: Scope, declared: AnyRoute): void {
    const route = withEffect(declared)
    const pattern = compilePattern(route.path)
    const key = `${route.method} ${pattern.shape}`
    const taken = this.#entries.get(key)
    if (taken)
      throw new Error(
        `route ${route.method} ${route.path} of plugin "${scope.name}" is taken by ` +
          `"${taken.scope.name}" (${taken.route.path})`,
      )
    this.#entries.set(key, { route, scope, pattern })
    this.#changed()
    scope.own('route', `${route.method} ${route.path}`, () => {
      this.#entries.delete(key)
      this.#changed()
    })
  }

  addSocket(scope: Scope, declared: AnySocketRoute): void {
    const route = withEffect(declared)
    const pattern = compilePattern(route.path)
    const taken = this.#sockets.get(pattern.shape)
    if (taken)
      throw new Error(
        `socket ${route.path} of plugin "${scope.name}" is taken by "${taken.scope.name}" (${taken.route.path})`,
      )
    this.#sockets.set(pattern.shape, { route, scope, pattern })
    this.#changed()
    scope.own('route', `WebSocket ${route.path}`, () => {
      this.#sockets.delete(pattern.shape)
      this.#changed()
    })
  }

  /** Keeps the present routes of these plugins matchable until the returned function is called. */
  keep(plugins: ReadonlySet<string>): () => void {
    const kept = [...this.#entries].filter(([, entry]) => plugins.has(entry.scope.name))
    for (const [key, entry] of kept) this.#held.set(key, entry)
    return () => {
      for (const [key, entry] of kept) if (this.#held.get(key) === entry) this.#held.delete(key)
      this.#changed()
    }
  }

  dispatch(routed: RoutedRequest): Answer | Promise<Answer> {
    const { method, path } = routed.exchange
    const pathname = canonicalPath(path)
    const found = this.#find(method, pathname) ?? (method === 'HEAD' ? this.#find('GET', pathname) : undefined)
    routed.params = found?.params
    return this.#handler(routed, found?.data)
  }

  routes(): readonly AnyRoute[] {
    return [...this.#entries.values()].map((entry) => entry.route)
  }
  sockets(): readonly AnySocketRoute[] {
    return [...this.#sockets.values()].map((entry) => entry.route)
  }
  entries(): readonly Entry[] {
    return [...this.#entries.values()]
  }
  socketEntries(): readonly SocketEntry[] {
    return [...this.#sockets.values()]
  }

  /** The methods of a path, for 405 and OPTIONS. Asks the router itself, so that both always agree. */
  methods(path: string): readonly string[] {
    const pathname = canonicalPath(path)
    const found = METHODS.filter((method) => this.#find(method, pathname) !== undefined)
    return found.includes('GET') ? [...found, 'HEAD'] : found
  }

  /** The socket route of a path: the one with the most literal segments. */
  findSocket(path: string): { readonly entry: SocketEntry; readonly params: Record<string, string> } | undefined {
    let best: { entry: SocketEntry; params: Record<string, string> } | undefined
    const literal = (pattern: Pattern): number => pattern.segments.filter((segment) => segment.kind === 'text').length
    for (const entry of this.#sockets.values()) {
      const params = matchPattern(entry.pattern, canonicalPath(path))
      if (params && (!best || literal(entry.pattern) > literal(best.entry.pattern))) best = { entry, params }
    }
    return best
  }

  #changed(): void {
    this.version++
    this.#router = undefined
  }

  #find(method: string, pathname: string): MatchedRoute<Entry> | undefined {
    return findRoute((this.#router ??= this.#build()), method, pathname)
  }
  #build(): RouterContext<Entry> {
    const router = createRouter<Entry>()
    for (const [key, entry] of this.#held)
      if (!this.#entries.has(key)) addRoute(router, entry.route.method, entry.route.path, entry)
    for (const entry of this.#entries.values()) addRoute(router, entry.route.method, entry.route.path, entry)
    return router
  }
}

/** A plugin written without types may omit the effect: then only the owner may call the route. Throws if invalid. */
function withEffect<R extends AnyRoute | AnySocketRoute>(route: R): R {
  const declared: unknown = route.effect
  if (declared === undefined) return { ...route, effect: 'lasting' }
  if (effects.some((effect) => effect === declared)) return route
  throw new Error(`route ${route.path} has the effect "${String(declared)}"; there are ${effects.join(', ')}`)
}

/** Decodes escapes of unreserved characters, which do not change the path (RFC 3986, 6.2.2.2). */
export function canonicalPath(path: string): string {
  if (!path.includes('%')) return path
  return path.replace(/%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/gi, (escape) =>
    String.fromCharCode(Number.parseInt(escape.slice(1), 16)),
  )
}
