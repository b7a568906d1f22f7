import type * as v from 'valibot'
import type { ErrorDefinition } from '../errors/codes.ts'
import type { ErrorCode } from '../errors/error.ts'
import type { Problem } from '../errors/render.ts'
import type { Effect } from '../auth/authority.ts'
import type { Principal } from '../auth/principal.ts'

type Schema = v.GenericSchema
type Out<S> = S extends Schema ? v.InferOutput<S> : S extends RawBody ? Uint8Array : undefined
type Awaitable<T> = T | Promise<T>
/** The methods a route may have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Takes the body as bytes instead of parsed JSON. The limit is in bytes; over it the answer is 413. */
export interface RawBody {
  readonly '~body': 'raw'
  /** The largest body in bytes. */
  readonly maxBytes: number
  /** The bytes are JSON of this shape, which the handler reads itself; for the OpenAPI document only. */
  readonly json?: Schema
  /**
   * The bytes may be a form with a file under this name, which the handler reads itself; for the OpenAPI document
   * only.
   */
  readonly form?: string
}
/** As `body` of a route: the handler gets the bytes. `json` describes them for the OpenAPI document only. */
export const rawBody = (maxBytes: number, json?: Schema): RawBody => ({
  '~body': 'raw',
  maxBytes,
  ...(json ? { json } : {}),
})

/**
 * One event of a stream. `data` is encoded already, so that it is serialised once however many read it. With nothing
 * but an `id` it is no
 * event: it is what a client sends as `Last-Event-ID` when it comes back.
 */
export interface ServerSentEvent {
  /** The `event` field; absent for an event without a name. */
  readonly event?: string
  /** The `data` field, which may have several lines. */
  readonly data: string
  /** The `id` field, which a client sends back as `Last-Event-ID`. */
  readonly id?: string
  /** It does not settle the status of a stream that holds it: what comes next may still be a refusal. */
  readonly provisional?: true
}
/** Answered as `text/event-stream`. Pulled only as fast as the client reads; ended by `return()` when it leaves. */
export type EventStream = AsyncIterable<ServerSentEvent> & {
  /** Headers of the answer, which are out before the first event. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * The status waits for the first event, at most `[http] stream_status_ms`: what fails before it is answered as an
   * error and not as a stream.
   */
  readonly holdsStatus?: true
}

/** An answer that is not JSON: a page, a file, a metrics text. Made with `reply()`. */
export interface Reply {
  readonly '~reply': true
  /** The HTTP status. */
  readonly status: number
  /** The headers of the answer, by name. */
  readonly headers: Readonly<Record<string, string>>
  /** A text, bytes, or nothing. */
  readonly body: string | Uint8Array | null
}
/** An answer that is not JSON, for a handler to return. The status is 200 when absent. */
export function reply(
  body: string | Uint8Array | null,
  headers: Readonly<Record<string, string>> = {},
  status = 200,
): Reply {
  return { '~reply': true, status, headers, body }
}

/** An answer beside the usual one, for the OpenAPI document. It has no body when neither is given. */
export interface OtherAnswer {
  readonly description: string
  readonly json?: Schema
  /** Media type of a body that is no JSON. */
  readonly type?: string
}

/** What every handler knows of a request. */
export interface RequestFacts {
  /** The id of the request (a UUID), which the answer has as `X-Request-Id`. */
  readonly requestId: string
  /** Who makes the request. */
  readonly principal: Principal
  /** The client's address as the limiter sees it. */
  readonly clientAddress: string
  /** One request header by its lower-case name. */
  header(name: string): string | undefined
}
/** What the GET of a thing shows of it now. */
export interface Shown {
  readonly fields: object
  /** Those that move by themselves, such as what was spent: whatever value comes back, nobody meant to change it. */
  readonly measured?: readonly string[]
}
/** What the handler of a route is given. */
export interface RouteInput<P, Q, B> extends RequestFacts {
  /** The parts of the path, parsed by `params` of the route. */
  readonly params: P
  /** The query, parsed by `query` of the route. */
  readonly query: Q
  /** The body, parsed by `body` of the route; bytes for `rawBody`. */
  readonly body: B
  /** Aborts when the client goes away before the answer is complete, and when the plugin unloads. */
  readonly signal: AbortSignal
  /**
   * With an Idempotency-Key on an `idempotent` route: the id (a UUID) that what this request makes has to take, the
   * same on every retry.
   */
  readonly effectId?: string | undefined
  /** Every field of the body came back as it is `shown`, so that the body is empty and there is nothing to do. */
  readonly unchanged?: true | undefined
}

export type { Problem } from '../errors/render.ts'

/** One method on one path. Its schemas parse the request and describe it in the OpenAPI document. */
export interface Route<
  P extends Schema | undefined,
  Q extends Schema | undefined,
  B extends Schema | RawBody | undefined,
  R extends Schema,
> {
  /** The HTTP method. */
  readonly method: Method
  /** `:name` is one segment, `**:name` the rest of the path with its slashes. Decoded once. */
  readonly path: `/${string}`
  /** One line for the OpenAPI document, such as `List the things`. */
  readonly summary: string
  /** More of it for the OpenAPI document. */
  readonly description?: string
  /** `public` for the health check and the web page only; `signed` when the handler checks a platform's signature. */
  readonly auth: 'public' | 'bearer' | 'signed'
  /**
   * With `bearer`: what callers of this route present instead of the API key, which does not open it then.
   * `undefined`: the key, as
   * everywhere.
   */
  token?(): string | undefined
  /**
   * With `token`: whether a request without any credential brings a signature in its place, which the handler has to
   * check.
   */
  signed?(header: (name: string) => string | undefined): boolean
  /**
   * A page of another site may send people here, as a sign-in that answers with a form does: the Origin is not
   * checked, the handler has to.
   */
  readonly crossSite?: boolean
  /**
   * What a request leaves behind, from which follows who may make it: the holder of a credential beside the key
   * cannot do what is
   * `lasting`. The methods do not tell: a GET may send a message.
   */
  readonly effect: Effect
  /** Where it depends on what is sent: this counts then, and `effect` is the most that can be known before. */
  effectOf?(input: RouteInput<Out<P>, Out<Q>, Out<B>>): Effect
  /** In limiter tokens (Interface 8, the table in the API facts). Charged before the body is read. */
  readonly cost: number
  /**
   * Charged besides when the body is read: what the items of a bulk request cost, so that many at once are no cheaper
   * than one by one.
   */
  costOf?(body: Out<B>): number
  /** The schema of the parts of the path that `path` names. */
  readonly params?: P
  /** The schema of the query. A parameter that comes more than once is a list. */
  readonly query?: Q
  /** The schema of the JSON body, or `rawBody(…)` for bytes. */
  readonly body?: B
  /**
   * With PUT or PATCH: what the GET of the same thing shows. A field that comes back as it is shown changes nothing,
   * and the body gets the
   * others only. A field that neither the body has nor comes back unchanged is refused.
   */
  shown?(input: { readonly params: Out<P> }): Awaitable<Shown>
  /** The JSON of a successful answer. */
  readonly returns: R
  /** The status of a successful answer; 200 when absent. */
  readonly status?: 200 | 201 | 202 | 204 | 302
  /** What a `reply()` may have instead of that status. */
  readonly answers?: Readonly<Record<number, OtherAnswer>>
  /** The JSON in `data` of an event, when the handler may answer with an event stream. */
  readonly streams?: Schema
  /** The event stream has no end of its own (a log, live events): unloading closes it instead of waiting for it. */
  readonly feed?: true
  /** Media type of a successful `reply()` that is no JSON, as in an Accept header. */
  readonly produces?: string
  /**
   * Errors beyond those every route can give; one that is no `…_not_found` in the usual format is made with
   * `defineError`.
   */
  readonly errors?: readonly (ErrorCode | ErrorDefinition)[]
  /**
   * The header Idempotency-Key is honoured: one effect and one answer for 24 hours. What the handler makes takes
   * `effectId` as its id,
   * so that it cannot be made twice. A query with `idempotency_key` is another place for it, for who can send no
   * headers.
   */
  readonly idempotent?: true
  /**
   * What came of the effect with this id, for a request whose answer is not stored: it was a stream, or the process
   * died. `undefined`
   * when there is no such effect; throws what it failed by. Needed by an idempotent route that may stream.
   */
  recall?(
    effectId: string,
    input: RouteInput<Out<P>, Out<Q>, Out<B>>,
  ): Awaitable<v.InferOutput<R> | EventStream | Reply | undefined>
  /** Example of the request body and of the answer, for the OpenAPI document. */
  readonly example?: { readonly body?: unknown; readonly returns?: unknown }
  /**
   * What the daemon itself sends later because of this request; for the OpenAPI document only. `to` is where, in the
   * request's body.
   */
  readonly callback?: {
    readonly name: string
    readonly to: string
    readonly summary: string
    readonly body: Schema
    readonly headers: Readonly<Record<string, string>>
    readonly example: unknown
  }
  /** Another body format for errors of this route (the OpenAI-compatible API has its own). */
  readonly renderError?: (problem: Problem) => unknown
  /** Answers. A thrown `Refusal` is shown to the caller; anything else is a 500 without detail. */
  handle(input: RouteInput<Out<P>, Out<Q>, Out<B>>): Awaitable<v.InferOutput<R> | EventStream | Reply>
}
/** A route whatever its schemas are. */
export type AnyRoute = Route<Schema | undefined, Schema | undefined, Schema | RawBody | undefined, Schema>
/** The route as it is, checked by the compiler. */
export function defineRoute<
  R extends Schema,
  P extends Schema | undefined = undefined,
  Q extends Schema | undefined = undefined,
  B extends Schema | RawBody | undefined = undefined,
>(route: Route<P, Q, B, R>): Route<P, Q, B, R> {
  return route
}

/** One open WebSocket. */
export interface Socket {
  /** Unique among the sockets of this daemon. */
  readonly id: string
  /** The client's address as the limiter sees it. */
  readonly clientAddress: string
  /** Who opened it. */
  readonly principal: Principal
  /** Aborts when the socket closes, for whatever reason. */
  readonly signal: AbortSignal
  /** Bytes accepted by `send` that the client has not taken yet. */
  readonly bufferedBytes: number
  /** Sends one text frame. A client that lets more than the configured limit pile up is closed with 1013. */
  send(text: string): void
  /** Settles when the buffer is below its mark again, or the socket is closed. */
  drained(): Promise<void>
  /** Closes it with a status code such as 1000 and a reason of at most 123 bytes. */
  close(code: number, reason: string): void
}
/** What is known when a client asks for a WebSocket. */
export interface SocketInput<P, Q> extends RequestFacts {
  /** The parts of the path, parsed by `params` of the route. */
  readonly params: P
  /** The query, parsed by `query` of the route. */
  readonly query: Q
}

/** A WebSocket on one path. `S` is what `accept` returns and the other handlers get. */
export interface SocketRoute<P extends Schema | undefined, Q extends Schema | undefined, S> {
  /** As of a route: `:name` is one segment. */
  readonly path: `/${string}`
  /** One line for the list of routes. */
  readonly summary: string
  /** `public` for everybody, `bearer` for who presents the API key or another accepted credential. */
  readonly auth: 'public' | 'bearer'
  /** Of the frames that arrive, as of a route. */
  readonly effect: Effect
  /** Limiter tokens of the upgrade, and of every frame that arrives. */
  readonly cost: number
  /** Limiter tokens of every frame that arrives. */
  readonly frameCost: number
  /** Instead of `frameCost`, where frames differ; it sees every frame, so it must be quick. */
  costOf?(text: string): number
  /** The schema of the parts of the path. */
  readonly params?: P
  /** The schema of the query. */
  readonly query?: Q
  /** Errors that `accept` may throw, beyond those every route can give. */
  readonly errors?: readonly (ErrorCode | ErrorDefinition)[]
  /** Runs before the protocol switches: a `Refusal` here is an ordinary HTTP answer (Interface 7: 400, 404). */
  accept(input: SocketInput<Out<P>, Out<Q>>): Awaitable<S>
  /** Runs once when the socket is open, before the first frame. */
  open(socket: Socket, state: S): Awaitable<void>
  /** One text frame. Called one at a time in order unless it is not awaited by the handler itself. */
  frame(socket: Socket, state: S, text: string): Awaitable<void>
  /** A frame was dropped because it was over the rate limit. Without this handler the socket is closed with 1008. */
  refused?(socket: Socket, state: S, problem: Problem): Awaitable<void>
  /** Runs once when the socket is closed, for whatever reason. */
  close?(socket: Socket, state: S): Awaitable<void>
}
/** A WebSocket whatever its schemas are. */
export type AnySocketRoute = SocketRoute<Schema | undefined, Schema | undefined, unknown>
/** The WebSocket as it is, checked by the compiler. */
export function defineSocket<S, P extends Schema | undefined = undefined, Q extends Schema | undefined = undefined>(
  route: SocketRoute<P, Q, S>,
): SocketRoute<P, Q, S> {
  return route
}

/** Adds routes until the plugin unloads. */
export interface Routes {
  /** Throws when the method and path are taken. */
  add(...routes: readonly AnyRoute[]): void
  /** Throws when the path is taken. */
  addSocket(...routes: readonly AnySocketRoute[]): void
}
