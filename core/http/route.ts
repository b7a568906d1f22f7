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

/** Takes the body as bytes instead of parsed JSON. A body above `maxBytes` is answered with 413. */
export interface RawBody {
  readonly '~body': 'raw'
  /** The largest body in bytes. */
  readonly maxBytes: number
  /** The shape of the JSON in the bytes, which the handler parses itself; for the OpenAPI document only. */
  readonly json?: Schema
  /**
   * Name of the file field if the bytes may be a form, which the handler parses itself; for the OpenAPI document only.
   */
  readonly form?: string
}
/** For `body` of a route: the handler gets the bytes. `json` describes them for the OpenAPI document only. */
export const rawBody = (maxBytes: number, json?: Schema): RawBody => ({
  '~body': 'raw',
  maxBytes,
  ...(json ? { json } : {}),
})

/**
 * One event of a stream. `data` is encoded already, so that it is serialised once for all readers. With only an `id` it
 * is not an event: it sets what the client sends as `Last-Event-ID` when it reconnects.
 */
export interface ServerSentEvent {
  /** The `event` field; absent for an event without a name. */
  readonly event?: string
  /** The `data` field, which may have several lines. */
  readonly data: string
  /** The `id` field, which a client sends back as `Last-Event-ID`. */
  readonly id?: string
  /**
   * With `holdsStatus`: this event does not decide the status, and a later failure may still be answered as an error.
   */
  readonly provisional?: true
}
/** Answered as `text/event-stream`. Pulled only as fast as the client reads; ended by `return()` when it leaves. */
export type EventStream = AsyncIterable<ServerSentEvent> & {
  /** Headers of the answer, sent before the first event. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * The status waits for the first event, at most `[http] stream_status_ms`: a failure before it is answered as an
   * error instead of a stream.
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
  /** Text, bytes, nothing, or bytes as they come. */
  readonly body: string | Uint8Array | ByteStream | null
}
/**
 * Bytes that are sent as they come, such as a `ReadableStream`. Pulled only as fast as the client reads; ended by
 * `return()` when it leaves.
 */
export type ByteStream = AsyncIterable<Uint8Array>
/** An answer that is not JSON, for a handler to return. The status is 200 when absent. */
export function reply(body: Reply['body'], headers: Readonly<Record<string, string>> = {}, status = 200): Reply {
  return { '~reply': true, status, headers, body }
}

/** A further answer of a route, for the OpenAPI document. It has no body when neither field is given. */
export interface OtherAnswer {
  readonly description: string
  readonly json?: Schema
  /** Media type of a body that is not JSON. */
  readonly type?: string
}

/** What every handler knows about a request. */
export interface RequestFacts {
  /** The id of the request (a UUID), also sent as `X-Request-Id`. */
  readonly requestId: string
  /** Who makes the request. */
  readonly principal: Principal
  /** The client's address as the limiter sees it. */
  readonly clientAddress: string
  /** One request header by its lower-case name. */
  header(name: string): string | undefined
  /** All request headers, by lower-case name. */
  headers(): Readonly<Record<string, string>>
}
/** The present values that the GET of a resource shows. */
export interface Shown {
  readonly fields: object
  /** Fields that change by themselves, such as what was spent: a different value in the request is ignored. */
  readonly measured?: readonly string[]
}
/** The input of the handler of a route. */
export interface RouteInput<P, Q, B> extends RequestFacts {
  /** The parts of the path, parsed by `params` of the route. */
  readonly params: P
  /** The query, parsed by `query` of the route. */
  readonly query: Q
  /** The body, parsed by `body` of the route; bytes for `rawBody`. */
  readonly body: B
  /** Aborts when the client disconnects before the answer is complete, and when the plugin unloads. */
  readonly signal: AbortSignal
  /**
   * With an Idempotency-Key on an `idempotent` route: the id (a UUID) for what this request creates, the same on every
   * retry.
   */
  readonly effectId?: string | undefined
  /** Every field of the body equals the `shown` value: the body is empty and there is nothing to do. */
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
  /** Details for the OpenAPI document. */
  readonly description?: string
  /**
   * `public` for the health check and the web page only; `signed` when the handler checks the signature of a platform.
   */
  readonly auth: 'public' | 'bearer' | 'signed'
  /**
   * With `bearer`: the token of this route, which replaces the API key. `undefined`: the API key, as on every route.
   */
  token?(): string | undefined
  /** With `token`: whether a request without a credential has a signature, which the handler checks. */
  signed?(header: (name: string) => string | undefined): boolean
  /**
   * Another site may navigate here, such as a sign-in that answers with a form. The Origin is not checked; the handler
   * must.
   */
  readonly crossSite?: boolean
  /**
   * The lasting effect of a request, which decides who may make it: a credential other than the API key cannot do what
   * is `lasting`. The method does not decide: a GET may send a message.
   */
  readonly effect: Effect
  /** The effect if it depends on the input. `effect` is then the greatest one that is known before parsing. */
  effectOf?(input: RouteInput<Out<P>, Out<Q>, Out<B>>): Effect
  /** Cost in limiter tokens (Interface 8, the table in the API facts). Charged before the body is read. */
  readonly cost: number
  /**
   * A further cost, charged after the body is read: that of the items of a bulk request, so that a bulk request is not
   * cheaper than single ones.
   */
  costOf?(body: Out<B>): number
  /** The schema of the path parameters. */
  readonly params?: P
  /** The schema of the query. A repeated parameter is a list. */
  readonly query?: Q
  /** The schema of the JSON body, or `rawBody(…)` for bytes. */
  readonly body?: B
  /**
   * With PUT or PATCH: what the GET of the same resource shows. Fields with the shown value are removed from the body.
   * A field that the body schema does not have is refused unless it has the shown value.
   */
  shown?(input: { readonly params: Out<P> }): Awaitable<Shown>
  /** The JSON of a successful answer. */
  readonly returns: R
  /** The status of a successful answer; 200 when absent. */
  readonly status?: 200 | 201 | 202 | 204 | 302
  /** Further statuses that a `reply()` may have. */
  readonly answers?: Readonly<Record<number, OtherAnswer>>
  /** The JSON in `data` of an event if the handler may answer with an event stream. */
  readonly streams?: Schema
  /** The event stream never ends by itself (a log, live events): unloading closes it instead of waiting for it. */
  readonly feed?: true
  /** Media type of a successful `reply()` that is not JSON, as in an Accept header. */
  readonly produces?: string
  /**
   * Errors beyond those of every route. One that is not a `…_not_found` in the usual format is made with `defineError`.
   */
  readonly errors?: readonly (ErrorCode | ErrorDefinition)[]
  /**
   * Honours the header Idempotency-Key: one effect and one answer for 24 hours. What the handler creates takes
   * `effectId` as its id, so that it cannot be created twice. Clients that cannot send headers use the query parameter
   * `idempotency_key`. `false` refuses a request with a key: it is done anew each time, and its sender must know. Absent
   * where a repeated request leaves what the first one left.
   */
  readonly idempotent?: boolean
  /**
   * The result of the effect with this id, if its answer is not stored: it was a stream, or the process died.
   * `undefined` if there is no such effect; throws the error it failed with. Required for an idempotent route that may
   * stream, or that fails when it makes what is there already: without it the handler runs again with the same id.
   */
  recall?(
    effectId: string,
    input: RouteInput<Out<P>, Out<Q>, Out<B>>,
  ): Awaitable<v.InferOutput<R> | EventStream | Reply | undefined>
  /**
   * `false`: the answer is not stored beside the effect, a repeated request asks `recall`. For answers with content that
   * can be deleted. Requires `recall`.
   */
  readonly keepsAnswer?: boolean
  /** Example of the request body and of the answer, for the OpenAPI document. */
  readonly example?: { readonly body?: unknown; readonly returns?: unknown }
  /**
   * The request that the daemon sends later as a result, for the OpenAPI document only. `to` is the field of the
   * request body with its address.
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
  /** Answers the request. A thrown `Refusal` is shown to the caller; any other error is a 500 without detail. */
  handle(input: RouteInput<Out<P>, Out<Q>, Out<B>>): Awaitable<v.InferOutput<R> | EventStream | Reply>
}
/** A route with any schemas. */
export type AnyRoute = Route<Schema | undefined, Schema | undefined, Schema | RawBody | undefined, Schema>
/** Returns the route; the compiler checks it. */
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
  /** Sends one text frame. A client whose unread data exceeds the configured limit is closed with 1013. */
  send(text: string): void
  /** Resolves when half of the buffer is free, or the socket is closed. */
  drained(): Promise<void>
  /** Closes the socket with a status code such as 1000 and a reason of at most 123 bytes. */
  close(code: number, reason: string): void
}
/** What is known about a client that opens a WebSocket. */
export interface SocketInput<P, Q> extends RequestFacts {
  /** The parts of the path, parsed by `params` of the route. */
  readonly params: P
  /** The query, parsed by `query` of the route. */
  readonly query: Q
}

/** A WebSocket on one path. `S` is what `accept` returns and the other handlers get. */
export interface SocketRoute<P extends Schema | undefined, Q extends Schema | undefined, S> {
  /** Like the path of a route: `:name` is one segment. */
  readonly path: `/${string}`
  /** One line for the list of routes. */
  readonly summary: string
  /** `public` for everybody; `bearer` for those who present the API key or another accepted credential. */
  readonly auth: 'public' | 'bearer'
  /** Effect of incoming frames, as for a route. */
  readonly effect: Effect
  /** Limiter tokens of the upgrade. */
  readonly cost: number
  /** Limiter tokens of every frame that arrives. */
  readonly frameCost: number
  /** Replaces `frameCost` if frames differ. Called for every frame, so it must be fast. */
  costOf?(text: string): number
  /** The schema of the parts of the path. */
  readonly params?: P
  /** The schema of the query. */
  readonly query?: Q
  /** Errors that `accept` may throw, beyond those of every route. */
  readonly errors?: readonly (ErrorCode | ErrorDefinition)[]
  /** Runs before the protocol switches: a `Refusal` becomes an ordinary HTTP answer (Interface 7: 400, 404). */
  accept(input: SocketInput<Out<P>, Out<Q>>): Awaitable<S>
  /** Runs once when the socket is open, before the first frame. */
  open(socket: Socket, state: S): Awaitable<void>
  /** Handles one text frame. The next frame waits until the returned promise settles. */
  frame(socket: Socket, state: S, text: string): Awaitable<void>
  /** A frame was dropped because it was over the rate limit. Without this handler the socket is closed with 1008. */
  refused?(socket: Socket, state: S, problem: Problem): Awaitable<void>
  /** Runs once when the socket is closed, for whatever reason. */
  close?(socket: Socket, state: S): Awaitable<void>
}
/** A WebSocket with any schemas. */
export type AnySocketRoute = SocketRoute<Schema | undefined, Schema | undefined, unknown>
/** Returns the WebSocket route; the compiler checks it. */
export function defineSocket<S, P extends Schema | undefined = undefined, Q extends Schema | undefined = undefined>(
  route: SocketRoute<P, Q, S>,
): SocketRoute<P, Q, S> {
  return route
}

/** Adds routes until the plugin unloads. */
export interface Routes {
  /** Throws if the method and path are already in use. */
  add(...routes: readonly AnyRoute[]): void
  /** Throws if the path is already in use. */
  addSocket(...routes: readonly AnySocketRoute[]): void
}
