import type * as v from 'valibot'
import type { ErrorDefinition } from '../errors/codes.ts'
import type { ErrorCode } from '../errors/error.ts'
import type { Problem } from '../errors/render.ts'
import type { Effect } from '../auth/authority.ts'
import type { Principal } from '../auth/principal.ts'

type Schema = v.GenericSchema<any, any>
type Out<S> = S extends Schema ? v.InferOutput<S> : S extends RawBody ? Uint8Array : undefined
type Awaitable<T> = T | Promise<T>
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Takes the body as bytes instead of parsed JSON. The limit is in bytes; over it the answer is 413. */
export interface RawBody {
  readonly '~body': 'raw'
  readonly maxBytes: number
  /** The bytes are JSON of this shape, which the handler reads itself; for the OpenAPI document only. */
  readonly json?: Schema
  /** The bytes may be a form with a file under this name, which the handler reads itself; for the OpenAPI document only. */
  readonly form?: string
}
export const rawBody = (maxBytes: number, json?: Schema): RawBody => ({
  '~body': 'raw',
  maxBytes,
  ...(json ? { json } : {}),
})

/**
 * One event of a stream. `data` is encoded already, so that it is serialised once however many read it. With nothing but an `id` it is no
 * event: it is what a client sends as `Last-Event-ID` when it comes back.
 */
export interface ServerSentEvent {
  readonly event?: string
  readonly data: string
  readonly id?: string
  /** It does not settle the status of a stream that holds it: what comes next may still be a refusal. */
  readonly provisional?: true
}
/** Answered as `text/event-stream`. Pulled only as fast as the client reads; ended by `return()` when it leaves. */
export type EventStream = AsyncIterable<ServerSentEvent> & {
  /** Headers of the answer, which are out before the first event. */
  readonly headers?: Readonly<Record<string, string>>
  /** The status waits for the first event, at most `[http] stream_status_ms`: what fails before it is answered as an error and not as a stream. */
  readonly holdsStatus?: true
}

/** An answer that is not JSON: a page, a file, a metrics text. Made with `reply()`. */
export interface Reply {
  readonly '~reply': true
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | null
}
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

export interface RequestFacts {
  readonly requestId: string
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
export interface RouteInput<P, Q, B> extends RequestFacts {
  readonly params: P
  readonly query: Q
  readonly body: B
  /** Aborts when the client goes away before the answer is complete, and when the plugin unloads. */
  readonly signal: AbortSignal
  /** With an Idempotency-Key on an `idempotent` route: the id (a UUID) that what this request makes has to take, the same on every retry. */
  readonly effectId?: string | undefined
  /** Every field of the body came back as it is `shown`, so that the body is empty and there is nothing to do. */
  readonly unchanged?: true | undefined
}

export type { Problem } from '../errors/render.ts'

export interface Route<
  P extends Schema | undefined,
  Q extends Schema | undefined,
  B extends Schema | RawBody | undefined,
  R extends Schema,
> {
  readonly method: Method
  /** `:name` is one segment, `**:name` the rest of the path with its slashes. Decoded once. */
  readonly path: `/${string}`
  readonly summary: string
  readonly description?: string
  /** `public` for the health check and the web page only; `signed` when the handler checks a platform's signature. */
  readonly auth: 'public' | 'bearer' | 'signed'
  /**
   * With `bearer`: what callers of this route present instead of the API key, which does not open it then. `undefined`: the key, as
   * everywhere.
   */
  token?(): string | undefined
  /** With `token`: whether a request without any credential brings a signature in its place, which the handler has to check. */
  signed?(header: (name: string) => string | undefined): boolean
  /** A page of another site may send people here, as a sign-in that answers with a form does: the Origin is not checked, the handler has to. */
  readonly crossSite?: boolean
  /**
   * What a request leaves behind, from which follows who may make it: the holder of a credential beside the key cannot do what is
   * `lasting`. The methods do not tell: a GET may send a message.
   */
  readonly effect: Effect
  /** Where it depends on what is sent: this counts then, and `effect` is the most that can be known before. */
  effectOf?(input: RouteInput<Out<P>, Out<Q>, Out<B>>): Effect
  /** In limiter tokens (Interface 8, the table in the API facts). Charged before the body is read. */
  readonly cost: number
  /** Charged besides when the body is read: what the items of a bulk request cost, so that many at once are no cheaper than one by one. */
  costOf?(body: Out<B>): number
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  /**
   * With PUT or PATCH: what the GET of the same thing shows. A field that comes back as it is shown changes nothing, and the body gets the
   * others only. A field that neither the body has nor comes back unchanged is refused.
   */
  shown?(input: { readonly params: Out<P> }): Awaitable<Shown>
  /** The JSON of a successful answer. */
  readonly returns: R
  readonly status?: 200 | 201 | 202 | 204 | 302
  /** What a `reply()` may have instead of that status. */
  readonly answers?: Readonly<Record<number, OtherAnswer>>
  /** The JSON in `data` of an event, when the handler may answer with an event stream. */
  readonly streams?: Schema
  /** The event stream has no end of its own (a log, live events): unloading closes it instead of waiting for it. */
  readonly feed?: true
  /** Media type of a successful `reply()` that is no JSON, as in an Accept header. */
  readonly produces?: string
  /** Errors beyond those every route can give; one that is no `…_not_found` in the usual format is made with `defineError`. */
  readonly errors?: readonly (ErrorCode | ErrorDefinition)[]
  /**
   * The header Idempotency-Key is honoured: one effect and one answer for 24 hours. What the handler makes takes `effectId` as its id,
   * so that it cannot be made twice. A query with `idempotency_key` is another place for it, for who can send no headers.
   */
  readonly idempotent?: true
  /**
   * What came of the effect with this id, for a request whose answer is not stored: it was a stream, or the process died. `undefined`
   * when there is no such effect; throws what it failed by. Needed by an idempotent route that may stream.
   */
  recall?(
    effectId: string,
    input: RouteInput<Out<P>, Out<Q>, Out<B>>,
  ): Awaitable<v.InferOutput<R> | EventStream | Reply | undefined>
  /** Example of the request body and of the answer, for the OpenAPI document. */
  readonly example?: { readonly body?: unknown; readonly returns?: unknown }
  /** What the daemon itself sends later because of this request; for the OpenAPI document only. `to` is where, in the request's body. */
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
  handle(input: RouteInput<Out<P>, Out<Q>, Out<B>>): Awaitable<v.InferOutput<R> | EventStream | Reply>
}
export type AnyRoute = Route<any, any, any, any>
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
  readonly id: string
  readonly clientAddress: string
  readonly principal: Principal
  /** Aborts when the socket closes, for whatever reason. */
  readonly signal: AbortSignal
  /** Bytes accepted by `send` that the client has not taken yet. */
  readonly bufferedBytes: number
  /** Sends one text frame. A client that lets more than the configured limit pile up is closed with 1013. */
  send(text: string): void
  /** Settles when the buffer is below its mark again, or the socket is closed. */
  drained(): Promise<void>
  close(code: number, reason: string): void
}
export interface SocketInput<P, Q> extends RequestFacts {
  readonly params: P
  readonly query: Q
}

export interface SocketRoute<P extends Schema | undefined, Q extends Schema | undefined, S> {
  readonly path: `/${string}`
  readonly summary: string
  readonly auth: 'public' | 'bearer'
  /** Of the frames that arrive, as of a route. */
  readonly effect: Effect
  /** Limiter tokens of the upgrade, and of every frame that arrives. */
  readonly cost: number
  readonly frameCost: number
  /** Instead of `frameCost`, where frames differ; it sees every frame, so it must be quick. */
  costOf?(text: string): number
  readonly params?: P
  readonly query?: Q
  readonly errors?: readonly (ErrorCode | ErrorDefinition)[]
  /** Runs before the protocol switches: a `Refusal` here is an ordinary HTTP answer (Interface 7: 400, 404). */
  accept(input: SocketInput<Out<P>, Out<Q>>): Awaitable<S>
  open(socket: Socket, state: S): Awaitable<void>
  /** One text frame. Called one at a time in order unless it is not awaited by the handler itself. */
  frame(socket: Socket, state: S, text: string): Awaitable<void>
  /** A frame was dropped because it was over the rate limit. Without this handler the socket is closed with 1008. */
  refused?(socket: Socket, state: S, problem: Problem): Awaitable<void>
  close?(socket: Socket, state: S): Awaitable<void>
}
export type AnySocketRoute = SocketRoute<any, any, any>
export function defineSocket<S, P extends Schema | undefined = undefined, Q extends Schema | undefined = undefined>(
  route: SocketRoute<P, Q, S>,
): SocketRoute<P, Q, S> {
  return route
}

export interface Routes {
  /** Throws when the method and path are taken. */
  add(...routes: readonly AnyRoute[]): void
  addSocket(...routes: readonly AnySocketRoute[]): void
}
