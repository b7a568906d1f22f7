import { H3 } from 'h3'
import type { H3Event } from 'h3'
import { effects } from '../auth/authority.ts'
import type { Scope } from '../scope/scope.ts'
import type { Answer } from './answer.ts'
import { compilePattern, matchPattern } from './pattern.ts'
import type { Pattern } from './pattern.ts'
import type { Passage } from './pipeline.ts'
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
/** What a route says to a question that is no request. */
const HERE = Symbol('here')

type Handler = (passage: Passage, entry: Entry | undefined) => Answer | Promise<Answer>

/**
 * The live routes. h3 can neither refuse a duplicate nor take a route back reliably, so the table is ours, and a
 * fresh router is made
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
        `route ${route.method} ${route.path} of plugin "${scope.name}" is taken by "${taken.scope.name}" (${taken.route.path})`,
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
    for (const [key, entry] of kept) this.#ghosts.set(key, entry)
    return () => {
      for (const [key, entry] of kept) if (this.#ghosts.get(key) === entry) this.#ghosts.delete(key)
      this.#changed()
    }
  }

  /**
   * Routes a request through h3. Its handler is called with a slim event of ours instead of the web Request and
   * Response that
   * `toNodeHandler` would make of every request: those cost a fifth of the throughput, and the pipeline needs none
   * of them.
   */
  dispatch(passage: Passage): Answer | Promise<Answer> {
    this.#app ??= this.#build()
    const found = this.#app.handler(passage as unknown as H3Event) as Answer | Promise<Answer> | symbol
    // A symbol is h3's word for "no route".
    return typeof found === 'symbol' ? this.#handler(passage, undefined) : found
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

  /**
   * The methods a path answers to, for 405 and OPTIONS: asked of the router itself, so that it is of one mind about a
   * path.
   */
  methods(path: string): readonly string[] {
    const app = (this.#app ??= this.#build())
    const pathname = canonicalPath(path)
    const found = METHODS.filter(
      (method) =>
        app.handler({ req: { method }, url: { pathname }, context: {}, asks: true } as unknown as H3Event) === HERE,
    )
    return found.includes('GET') ? [...found, 'HEAD'] : found
  }

  /** The socket route of a path: the one with the most literal segments first. */
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
    this.#app = undefined
  }

  #build(): H3 {
    const app = new H3()
    const on = (entry: Entry): void => {
      app.on(entry.route.method, entry.route.path, (event) =>
        'asks' in event ? HERE : this.#handler(event as unknown as Passage, entry),
      )
    }
    for (const [key, entry] of this.#ghosts) if (!this.#entries.has(key)) on(entry)
    for (const entry of this.#entries.values()) on(entry)
    return app
  }
}

/**
 * A plugin that was written without types may say nothing about its effect: then it is for the owner. Throws for an
 * effect there is none of.
 */
function withEffect<R extends AnyRoute | AnySocketRoute>(route: R): R {
  const declared: unknown = route.effect
  if (declared === undefined) return { ...route, effect: 'lasting' }
  if (effects.some((effect) => effect === declared)) return route
  throw new Error(`route ${route.path} has the effect "${String(declared)}"; there are ${effects.join(', ')}`)
}

/** Letters, digits and the like are the same path written with an escape or without (RFC 3986, 6.2.2.2). */
export function canonicalPath(path: string): string {
  if (!path.includes('%')) return path
  return path.replace(/%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/gi, (escape) =>
    String.fromCharCode(Number.parseInt(escape.slice(1), 16)),
  )
}
