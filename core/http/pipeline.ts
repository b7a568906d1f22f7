import type { ConsolaInstance } from 'consola'
import type * as v from 'valibot'
import { checkAuthority } from '../auth/authority.ts'
import { preflight } from '../auth/origin.ts'
import { actorOf } from '../auth/principal.ts'
import type { Principal } from '../auth/principal.ts'
import { Refusal } from '../errors/error.ts'
import { errorBody, outcomeOf } from '../errors/render.ts'
import { parse } from '../schema/parse.ts'
import { isRecorded, runAs } from '../scope/actor.ts'
import type { Admission } from './admission.ts'
import {
  Answer,
  answerOf,
  checkReply,
  errorAnswer,
  flatten,
  isStream,
  isStreamedReply,
  streamAnswer,
  streamedReply,
} from './answer.ts'
import { ByteStreamBody } from './byte-stream.ts'
import type { Exchange } from './exchange.ts'
import type { HoldQueue } from './hold-queue.ts'
import { INVALID_KEY } from './idempotency.ts'
import type { Idempotency } from './idempotency.ts'
import { changesOf, isChange } from './changes.ts'
import { decodeParams, parseQuery, readBody } from './input.ts'
import type { RequestCount } from './request-count.ts'
import type { RouteTable, Entry } from './router.ts'
import type { AnyRoute, ByteStream, EventStream, Reply, RouteInput, ServerSentEvent } from './route.ts'
import { Running, ScopeSignals } from './running.ts'
import type { HttpSettings } from './settings.ts'
import { EventStreamBody } from './sse.ts'
import { KeepAlive } from './streamed-body.ts'
import type { StreamedBody } from './streamed-body.ts'

export interface PipelineDeps {
  readonly settings: () => HttpSettings
  readonly log: ConsolaInstance
  readonly admission: Admission
  readonly holdQueue: HoldQueue
  readonly count: RequestCount
  readonly idempotency: Idempotency | undefined
  onDefect(error: unknown, where: string): void
  /** Called when a request with a lasting effect left no record of who made it. */
  onUnrecorded?(request: { readonly method: string; readonly path: string }): Promise<void>
}
/** A request, and what is known of it by now. One that was held continues with it. */
export interface RoutedRequest {
  readonly exchange: Exchange
  /** Of its path, as far as a route matched. */
  params?: Readonly<Record<string, string>> | undefined
  address?: string
  principal?: Principal
  startedAt?: number
}

/**
 * The input of a handler. `signal` and `header` are getters of the class: a getter in an object literal, or a function
 * in a field, keeps the request in memory until a major collection (measured: 2 KB each, a third of the throughput).
 */
class Input implements RouteInput<unknown, unknown, unknown> {
  params: unknown
  query: unknown
  body: unknown
  effectId: string | undefined
  unchanged: true | undefined
  readonly requestId: string
  readonly principal: Principal
  readonly clientAddress: string
  readonly #exchange: Exchange
  readonly #run: Running

  constructor(exchange: Exchange, caller: { readonly address: string; readonly principal: Principal }, run: Running) {
    this.requestId = exchange.requestId
    this.principal = caller.principal
    this.clientAddress = caller.address
    this.#exchange = exchange
    this.#run = run
  }
  get signal(): AbortSignal {
    return this.#run.signal
  }
  /** Works without `this`, so handlers may destructure it. */
  get header(): (name: string) => string | undefined {
    const exchange = this.#exchange
    return (name) => exchange.header(name)
  }
  get headers(): () => Readonly<Record<string, string>> {
    const exchange = this.#exchange
    return () => exchange.headers()
  }
}

/**
 * A page that passes on what a plugin asks for names that plugin, so that it reaches its own routes only. The table decides
 * whose a route is: which of two patterns a path matches is known nowhere else.
 */
function checkOwner(exchange: Exchange, { route, scope }: Entry): void {
  const plugin = exchange.header('svc-plugin')
  if (plugin === undefined || plugin === scope.name) return
  throw new Refusal('not_found', `${route.method} ${exchange.path} is no route of the plugin "${plugin}"`)
}

/**
 * The steps of every request, in this order; no plugin can insert one: request id, security headers (both with the
 * exchange), CORS, route lookup, limiter, auth, parse, handler, render, log line.
 */
export class Pipeline {
  readonly keepAlive: KeepAlive
  /** Set when the server shuts down: every new request gets 503. */
  draining = false
  #deps: PipelineDeps
  #signals = new ScopeSignals()
  #table: () => RouteTable

  constructor(deps: PipelineDeps, table: () => RouteTable) {
    this.#deps = deps
    this.#table = table
    this.keepAlive = new KeepAlive(() => deps.settings().sseKeepAliveMs)
  }

  /** The handler of every route; `entry` is `undefined` if none matched. Never throws. */
  handle(routed: RoutedRequest, entry: Entry | undefined): Answer | Promise<Answer> {
    const { exchange } = routed
    const admitted = routed.principal !== undefined
    try {
      if (routed.startedAt === undefined) {
        routed.startedAt = performance.now()
        this.#observe(exchange, entry, routed.startedAt)
        if (this.draining)
          return this.#failed(
            exchange,
            entry,
            new Refusal('service_unavailable', 'The service is shutting down', { retryAfterSecs: 5 }),
            ['connection', 'close'],
          )
        this.#deps.admission.origin(exchange, entry?.route.crossSite)
      }
      const { admission, holdQueue } = this.#deps
      const address = (routed.address ??= admission.address(exchange))
      // An unknown path costs a token too, so that guessing paths is limited.
      if (!admitted) admission.charge(admission.limitKey(exchange, address), entry ? entry.route.cost : 1)
      if (!entry) return this.#unmatched(exchange, address)
      // Repeated after a hold: the new route may require more than the old one.
      const principal = (routed.principal = admission.authenticate(
        entry.route.auth,
        exchange,
        address,
        entry.route.token?.(),
        entry.route.signed?.((name) => exchange.header(name)),
      ))
      checkOwner(exchange, entry)
      checkAuthority(principal, entry.route.effect)
      if (holdQueue.isHeld(entry.scope.name)) return this.#held(routed, entry)
      return this.#serve(exchange, entry, { address, principal }, routed.params)
    } catch (error) {
      return this.#failed(exchange, entry, error)
    }
  }

  async #held(routed: RoutedRequest, entry: Entry): Promise<Answer> {
    const { exchange } = routed
    const { holdMaxRequests = 256, holdMaxMs = 10_000 } = this.#deps.settings()
    try {
      await this.#deps.holdQueue.wait(entry.scope.name, { maxRequests: holdMaxRequests, maxMs: holdMaxMs }, (onLeave) =>
        exchange.onClose(onLeave),
      )
      return await this.#table().dispatch(routed)
    } catch (error) {
      return this.#failed(exchange, entry, error)
    }
  }

  #unmatched(exchange: Exchange, address: string): Answer {
    const { path } = exchange
    decodeParams({ path })
    const methods = this.#table().methods(path)
    const socket = this.#table().findSocket(path)
    if (methods.length === 0 && !socket) throw new Refusal('not_found', 'No such path')
    const allow = [...new Set([...methods, ...(socket ? ['GET'] : []), 'OPTIONS'])].join(', ')
    if (exchange.method === 'OPTIONS') {
      const origin = exchange.header('origin')
      return new Answer(
        204,
        origin === undefined ? ['allow', allow] : ['allow', allow, ...preflight(exchange, allow)],
        null,
      )
    }
    // Authenticate first, as for any GET: without the key a caller learns nothing about the path.
    if (socket && exchange.method === 'GET') {
      this.#deps.admission.authenticate(socket.entry.route.auth, exchange, address)
      throw new Refusal('invalid_request', 'This path expects a WebSocket upgrade')
    }
    return this.#failed(
      exchange,
      undefined,
      new Refusal('method_not_allowed', `${exchange.method} is not allowed here`, {
        details: { allow: allow.split(', ') },
      }),
      ['allow', allow],
    )
  }

  #serve(
    exchange: Exchange,
    entry: Entry,
    caller: { address: string; principal: Principal },
    raw: Record<string, string> | undefined,
  ): Answer | Promise<Answer> {
    const { route, scope } = entry
    if (scope.state === 'closed')
      throw new Refusal('service_unavailable', 'The plugin was unloaded', { retryAfterSecs: 1 })
    const run = new Running(exchange, scope, this.#signals, route.feed === true)
    const input = new Input(exchange, caller, run)
    try {
      const params = decodeParams(raw)
      input.params = route.params ? parse(route.params, params, 'path') : params
      if (route.query) input.query = parse(route.query, parseQuery(exchange.query), 'query')
      // A request with only a signature is not authenticated yet. The signed id serves as its idempotency key.
      const unchecked =
        route.signed !== undefined &&
        exchange.header('authorization') === undefined &&
        exchange.header('x-api-key') === undefined
      const given = unchecked ? undefined : (exchange.header('idempotency-key') ?? keyOf(input.query))
      if (given !== undefined) checkKey(route, given)
      const key = route.idempotent === true ? given : undefined
      if (key !== undefined && this.#deps.idempotency) return this.#once(exchange, entry, run, input, key)
      if (route.body === undefined) return this.#call(exchange, entry, run, input)
      return readBody(exchange, route.body, this.#deps.settings(), undefined, preparing(route, input)).then(
        (body) => {
          input.body ??= body
          if (route.costOf === undefined) return this.#call(exchange, entry, run, input)
          try {
            this.#chargeBody(exchange, caller.address, route.costOf(body))
          } catch (error) {
            return this.#failedRun(exchange, entry, run, error)
          }
          return this.#call(exchange, entry, run, input)
        },
        (error: unknown) => this.#failedRun(exchange, entry, run, error),
      )
    } catch (error) {
      return this.#failedRun(exchange, entry, run, error)
    }
  }

  #chargeBody(exchange: Exchange, address: string, cost: number): void {
    const { admission } = this.#deps
    admission.charge(admission.limitKey(exchange, address), cost)
  }

  #call(exchange: Exchange, entry: Entry, run: Running, input: Input): Answer | Promise<Answer> {
    try {
      const value: unknown = runAs(actorOf(input), () => this.#handled(exchange, entry.route, input))
      if (!(value instanceof Promise)) return this.#render(exchange, entry, run, input, value)
      return value
        .then((settled: unknown) => this.#render(exchange, entry, run, input, settled))
        .catch((error: unknown) => this.#failedRun(exchange, entry, run, error))
    } catch (error) {
      return this.#failedRun(exchange, entry, run, error)
    }
  }

  #handled(exchange: Exchange, route: AnyRoute, input: Input): unknown {
    const effect = route.effectOf?.(input) ?? route.effect
    checkAuthority(input.principal, effect)
    return effect === 'lasting' ? this.#recorded(exchange, route, input) : route.handle(input)
  }
  /** A lasting effect has a record before it is answered, also if the plugin does not write one. */
  async #recorded(exchange: Exchange, route: AnyRoute, input: Input): Promise<unknown> {
    const value: unknown = await route.handle(input)
    if (!isRecorded()) await this.#deps.onUnrecorded?.({ method: exchange.method, path: exchange.path })
    return value
  }

  /** Runs a request once per idempotency key; a repeated request gets the same answer. */
  async #once(exchange: Exchange, entry: Entry, run: Running, input: Input, key: string): Promise<Answer> {
    const { route } = entry
    const { settings, idempotency } = this.#deps
    try {
      let bytes = new Uint8Array(0)
      if (route.body !== undefined)
        input.body ??= await readBody(
          exchange,
          route.body,
          settings(),
          (raw) => {
            bytes = Uint8Array.from(raw)
          },
          preparing(route, input),
        )
      if (route.costOf) this.#chargeBody(exchange, input.clientAddress, route.costOf(input.body))
      const { recall } = route
      const { fingerprintOf } = await import('./idempotent-work.ts')
      const once = await idempotency?.answer({
        // Keys are separate for each principal: nobody gets the answer to the request of another.
        scope: `${exchange.method} ${exchange.path}${ownerOf(input.principal)}`,
        key,
        fingerprint: fingerprintOf(exchange.query, bytes),
        signal: input.signal,
        handle: (id) => {
          input.effectId = id
          return runAs(actorOf(input), () => this.#handled(exchange, route, input))
        },
        keepsAnswer: route.keepsAnswer,
        ...(recall ? { recall: (id: string) => recall(id, input) } : {}),
        render: (value) =>
          isStream(value) ? undefined : answerOf(route, exchange.method, value, settings().development),
        failed: (error) =>
          this.#failed(exchange, entry, run.unloading && !(error instanceof Refusal) ? restart(error) : error),
      })
      if (!once) throw new Error('an idempotency key without a store')
      const answer = 'answer' in once ? once.answer : await this.#stream(exchange, entry, run, input, once.value)
      if ('answer' in once) run.settle()
      return once.replayed
        ? new Answer(answer.status, ['idempotent-replayed', 'true', ...answer.headers], answer.body)
        : answer
    } catch (error) {
      return this.#failedRun(exchange, entry, run, error)
    }
  }

  #render(exchange: Exchange, entry: Entry, run: Running, input: Input, value: unknown): Answer | Promise<Answer> {
    if (isStream(value)) return this.#stream(exchange, entry, run, input, value)
    if (isStreamedReply(value)) return this.#streamBytes(exchange, entry, run, input, value)
    const answer = answerOf(entry.route, exchange.method, value, this.#deps.settings().development)
    run.settle()
    return answer
  }

  #stream(
    exchange: Exchange,
    entry: Entry,
    run: Running,
    { principal }: Input,
    events: EventStream,
  ): Answer | Promise<Answer> {
    const { route } = entry
    const { options, watch } = this.#openStream(entry, run, principal)
    const body = new EventStreamBody({
      ...options,
      events,
      failed: (error) => this.#streamFailed(exchange, entry, run, error),
      last: () => lastEvent(route, exchange.requestId),
    })
    watch(body)
    if (exchange.method !== 'HEAD') {
      if (events.holdsStatus !== true) return streamAnswer(body, events.headers)
      return body.begin(this.#deps.settings().streamStatusMs).then(
        () => streamAnswer(body, events.headers),
        (error: unknown) => {
          body.cancel()
          return this.#failedRun(exchange, entry, run, error, flatten(events.headers ?? {}))
        },
      )
    }
    body.cancel()
    return streamAnswer(undefined)
  }

  #streamBytes(
    exchange: Exchange,
    entry: Entry,
    run: Running,
    { principal }: Input,
    reply: Reply & { readonly body: ByteStream },
  ): Answer {
    if (this.#deps.settings().development) checkReply(entry.route, reply)
    const { options, watch } = this.#openStream(entry, run, principal)
    const body = new ByteStreamBody({
      ...options,
      bytes: reply.body,
      failed: (error) => this.#streamFailed(exchange, entry, run, error),
    })
    watch(body)
    if (exchange.method !== 'HEAD') return streamedReply(reply, body)
    body.cancel()
    return streamedReply(reply, undefined)
  }

  /** What every stream has in common; `watch` is called with its body. */
  #openStream({ route, scope }: Entry, run: Running, principal: Principal) {
    const { auth } = this.#deps.admission
    const generation = auth.generation()
    let release: (() => void | Promise<void>) | undefined
    const options = {
      keepAlive: this.keepAlive,
      allowed: () => route.auth !== 'bearer' || auth.holds(principal, generation),
      feed: route.feed === true,
      ended: () => {
        run.settle()
        void release?.()
      },
    }
    const watch = (body: StreamedBody): void => {
      if (route.feed === true) release = scope.own('stream', `${route.method} ${route.path}`, () => body.close())
      // A source that ignores the abort signal must not keep its client.
      else
        run.onUnload(() => {
          setTimeout(() => body.close(), 1_000).unref()
        })
    }
    return { options, watch }
  }

  /** The last event of a stream whose source threw; `undefined` if the client has left, which is no failure. */
  #streamFailed(exchange: Exchange, entry: Entry, run: Running, error: unknown): ServerSentEvent | undefined {
    const { route } = entry
    if (run.clientLeft) {
      this.#deps.log.debug('stream ended after the client left', { route: route.path, requestId: exchange.requestId })
      return undefined
    }
    const shown = run.unloading ? restart(error) : error
    return errorEvent(route, this.#outcome(exchange, entry, shown).problem)
  }

  #failedRun(exchange: Exchange, entry: Entry, run: Running, error: unknown, headers: readonly string[] = []): Answer {
    const shown = run.unloading && !(error instanceof Refusal) ? restart(error) : error
    run.settle()
    if (run.clientLeft) return new Answer(499, [], null)
    return this.#failed(exchange, entry, shown, headers)
  }

  #failed(exchange: Exchange, entry: Entry | undefined, error: unknown, headers: readonly string[] = []): Answer {
    return errorAnswer(exchange.method, this.#outcome(exchange, entry, error), entry?.route, headers)
  }

  #outcome(exchange: Exchange, entry: Entry | undefined, error: unknown) {
    const outcome = outcomeOf(error, exchange.requestId)
    const where = `${exchange.method} ${entry?.route.path ?? '(no route)'}`
    const { log, onDefect } = this.#deps
    if (outcome.kind === 'defect') {
      log.error('request failed', { where, requestId: exchange.requestId, error })
      onDefect(error, where)
      entry?.scope.countFailure(error)
    } else if (outcome.kind === 'upstream')
      log.warn('an upstream system failed', { where, requestId: exchange.requestId, error })
    return outcome
  }

  /** Counts the request now and writes its line when the answer is out. */
  #observe(exchange: Exchange, entry: Entry | undefined, startedAt: number): void {
    const { count, log } = this.#deps
    count.begin()
    exchange.onClose((complete) => {
      const ms = performance.now() - startedAt
      const status = exchange.status
      count.end(exchange.method, complete ? status : 499, ms)
      if (log.level >= 4)
        log.debug('request', {
          method: exchange.method,
          route: entry?.route.path ?? '(no route)',
          status,
          ms: Math.round(ms * 10) / 10,
          complete,
          requestId: exchange.requestId,
        })
    })
  }
}

function ownerOf(principal: Principal): string {
  return 'id' in principal ? ` ${principal.kind} ${principal.id}` : ''
}

/** A key in the query, because an `EventSource` cannot send headers. */
/** Nobody takes a request for done once that is not. */
function checkKey({ idempotent }: AnyRoute, key: string): void {
  if (key.trim() === '') throw new Refusal('invalid_request', INVALID_KEY)
  if (idempotent === false)
    throw new Refusal('invalid_request', 'Idempotency-Key: this request is done anew each time; send it without one')
}
function keyOf(query: unknown): string | undefined {
  if (typeof query !== 'object' || query === null || !('idempotency_key' in query)) return undefined
  return typeof query.idempotency_key === 'string' ? query.idempotency_key : undefined
}

/** Compares the body of a PUT or PATCH with the shown values before the schema parses it. */
function preparing(route: AnyRoute, input: Input) {
  if (!isChange(route)) return undefined
  return async (value: unknown, schema: v.GenericSchema): Promise<unknown> => {
    const changes = changesOf(schema, value, await route.shown?.({ params: input.params }))
    if (changes !== undefined) return changes
    input.unchanged = true
    input.body = {}
    return undefined
  }
}
function restart(cause: unknown): Refusal {
  return new Refusal('service_unavailable', 'service restart', { cause, retryAfterSecs: 1 })
}
function errorEvent(route: AnyRoute, problem: ReturnType<typeof outcomeOf>['problem']): ServerSentEvent {
  return { event: 'error', data: JSON.stringify(route.renderError ? route.renderError(problem) : errorBody(problem)) }
}
function lastEvent(route: AnyRoute, requestId: string): ServerSentEvent {
  return errorEvent(route, outcomeOf(new Refusal('service_unavailable', 'service restart'), requestId).problem)
}
