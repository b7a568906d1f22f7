import {
  createMcpHandler,
  isInitializeRequest,
  isJsonContentType,
  isJSONRPCRequest,
  isLegacyRequest,
  parseJSONRPCMessage,
} from '@modelcontextprotocol/server'
import type {
  JSONRPCMessage,
  JSONRPCRequest,
  McpHttpHandler,
  RequestId,
  ServerContext,
} from '@modelcontextprotocol/server'
import { randomUUID } from 'node:crypto'
import { isObject, reply } from 'svc/sdk'
import type { Logger, Reply, RequestFacts } from 'svc/sdk'
import type { McpBackend, McpCaller } from '../backend/backend.ts'
import type { Settings } from '../config.ts'
import { REVISIONS, serveClient } from '../server.ts'
import { readMessage } from './message.ts'
import { answerOnce } from './one-shot.ts'
import type { Session, SessionRegistry } from './session.ts'
import { SessionTransport } from './transport.ts'

/** A request as the route got it. */
export interface McpHttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly body: Uint8Array | undefined
  /** `signal` is made when it is asked for. */
  readonly facts: Pick<RequestFacts, 'principal' | 'header' | 'headers'> & { readonly signal: AbortSignal }
}
export interface EndpointDeps {
  readonly config: Settings
  readonly backend: McpBackend
  readonly sessions: SessionRegistry
  readonly log: Pick<Logger, 'debug' | 'error'>
  readonly now: () => number
}
/** The SDK wants one; Host and path were checked before. */
const ADDRESS = 'http://localhost/mcp'
const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const SERVER_ERROR = -32_000
const SESSION_NOT_FOUND = -32_001

/** One path of MCP over HTTP: clients with a session, those of 2026-07-28 without one, and single requests. */
export class Endpoint {
  readonly #deps: EndpointDeps
  readonly #modern: McpHttpHandler
  readonly #unfollow: () => void
  constructor(deps: EndpointDeps) {
    this.#deps = deps
    this.#modern = createMcpHandler(({ authInfo }) => this.#serve(callerIn(authInfo?.extra), false).server, {
      legacy: 'reject',
      maxSubscriptions: deps.config.max_subscriptions,
      onerror: (error) => deps.log.debug('a request to /mcp was refused', error),
    })
    this.#unfollow = deps.backend.onChanged((changed) => {
      const { notify } = this.#modern
      if ('uri' in changed) notify.resourceUpdated(changed.uri)
      else if ('list' in changed) notify[`${changed.list}Changed`]()
    })
  }

  async handle(request: McpHttpRequest): Promise<Reply> {
    const { method, facts } = request
    let body: unknown
    if (method === 'POST') {
      try {
        body = withVersion(readMessage(request.body ?? new Uint8Array()))
      } catch (error) {
        return failure(400, PARSE_ERROR, `Parse error: ${error instanceof Error ? error.message : 'not JSON'}`)
      }
    }
    const caller: McpCaller = {
      principal: facts.principal,
      agent: facts.header('x-svc-agent-id')?.trim() || undefined,
      sessionId: facts.header('mcp-session-id'),
    }
    if (caller.sessionId !== undefined) return this.#inSession(request, body, caller)
    const web = toWeb(request, facts.signal)
    if (method !== 'POST') return failure(400, SERVER_ERROR, 'The header Mcp-Session-Id is missing')
    if (!(await isLegacyRequest(web, body)))
      return toReply(await this.#modern.fetch(web, { parsedBody: body, authInfo: authOf(caller) }), undefined)
    if (isInitializeRequest(body)) return this.#initialize(web, body, caller)
    return this.#once(request, body, caller)
  }

  /** Ends what only waits: streams of clients without a session. Sessions are ended by their registry. */
  async close(): Promise<void> {
    this.#unfollow()
    await this.#modern.close()
  }

  #serve(caller: McpCaller, canAsk: boolean) {
    const { backend, config, log } = this.#deps
    return serveClient({
      backend,
      canAsk,
      maxSubscriptions: config.max_subscriptions,
      hopLimit: { max: config.max_hops, key: 'plugins.mcp-server.max_hops' },
      callerOf: (ctx: ServerContext) => callerIn(ctx.http?.authInfo?.extra, caller),
      onDefect: (error, method) => log.error(`a request of MCP failed: ${method}`, error),
    })
  }

  async #initialize(web: Request, body: unknown, caller: McpCaller): Promise<Reply> {
    const { sessions, config, backend, now } = this.#deps
    if (!(await sessions.makeRoom(caller.principal)))
      return failure(
        503,
        SERVER_ERROR,
        `${config.max_sessions} sessions are in use, which is all plugins.mcp-server.max_sessions allows`,
        idOf(body),
      )
    const id = randomUUID()
    const own = { ...caller, sessionId: id }
    const client = this.#serve(own, true)
    const transport = new SessionTransport(id, config, now)
    const session: Session = {
      id,
      principal: caller.principal,
      caller: own,
      backend,
      server: client.server,
      transport,
      client,
      lastUsedMs: now(),
    }
    await client.server.connect(transport)
    // The session counts before its answer goes out: a second one of the same client finds no more room.
    sessions.add(session)
    const ids = requestIds(body)
    transport.begin(ids)
    const answer = await transport.handleRequest(web, { parsedBody: body, authInfo: authOf(own) })
    if (answer.status !== 200) await sessions.end(session)
    return toReply(answer, session, ids)
  }

  async #inSession(request: McpHttpRequest, body: unknown, caller: McpCaller): Promise<Reply> {
    const { sessions, backend, config } = this.#deps
    const session = sessions.find(caller.sessionId ?? '', caller.principal, backend)
    if (!session) return failure(404, SESSION_NOT_FOUND, 'Session not found: send initialize again', idOf(body))
    if (request.method === 'DELETE') {
      await sessions.end(session)
      return json(200, { status: 'ok' })
    }
    const { transport } = session
    const ids = requestIds(body)
    // One answer would end both.
    const repeated = ids.find((id, at) => transport.isRunning(id) || ids.indexOf(id) !== at)
    if (repeated !== undefined)
      return failure(
        400,
        INVALID_REQUEST,
        `A request of this session with the id ${JSON.stringify(repeated)} runs already: each needs an id of its own`,
      )
    if (transport.running + ids.length > config.max_requests_per_session)
      return failure(
        429,
        SERVER_ERROR,
        `${transport.running} requests of this session run, and plugins.mcp-server.max_requests_per_session allows ` +
          `${config.max_requests_per_session}`,
        idOf(body),
      )
    const authInfo = authOf({ ...caller, agent: caller.agent ?? session.caller.agent })
    if (isUsual(request, body)) {
      const answer = await transport.answer(body, authInfo)
      if (answer) return json(200, answer, { 'mcp-session-id': session.id })
      return toReply(await transport.stream(toWeb(request), body, authInfo), session, ids)
    }
    transport.begin(ids)
    const answer = await transport.handleRequest(toWeb(request), { parsedBody: body, authInfo })
    for (const id of cancelledIds(body)) transport.forget(id)
    return toReply(answer, session, ids)
  }

  /** A request without a handshake, such as the bare `tools/list` of scripts. */
  async #once({ facts }: McpHttpRequest, body: unknown, caller: McpCaller): Promise<Reply> {
    if (Array.isArray(body)) return failure(400, INVALID_REQUEST, 'A batch needs a session: send initialize first')
    let message: JSONRPCMessage
    try {
      message = parseJSONRPCMessage(body)
    } catch {
      return failure(400, INVALID_REQUEST, 'This is no message of JSON-RPC 2.0', idOf(body))
    }
    if (!('method' in message) || !('id' in message)) return reply(null, {}, 202)
    const client = this.#serve(caller, false)
    try {
      return json(200, await answerOnce(client.server, message as JSONRPCRequest, facts.signal))
    } finally {
      client.close()
    }
  }
}

/** The interface has requests without `jsonrpc`, and scripts send them. */
function withVersion(body: unknown): unknown {
  return isObject(body) && !('jsonrpc' in body) ? { jsonrpc: '2.0', ...body } : body
}
/** Without a signal for a session: what runs in one outlives its request. */
function toWeb({ method, facts }: McpHttpRequest, signal?: AbortSignal): Request {
  return new Request(ADDRESS, { method, headers: forwarded(facts.headers()), ...(signal && { signal }) })
}
/** One request that the SDK would accept. It says itself what is wrong with another. */
function isUsual({ method, facts }: McpHttpRequest, body: unknown): body is JSONRPCRequest {
  const accept = facts.header('accept') ?? ''
  const revision = facts.header('mcp-protocol-version')
  return (
    method === 'POST' &&
    accept.includes('application/json') &&
    accept.includes('text/event-stream') &&
    isJsonContentType(facts.header('content-type')) &&
    (revision === undefined || isKnown(revision)) &&
    isJSONRPCRequest(body) &&
    body.method !== 'initialize'
  )
}
const isKnown = (revision: string): boolean => REVISIONS.some((known) => known === revision)
function forwarded(headers: Readonly<Record<string, string>>): Record<string, string> {
  const { authorization: _a, cookie: _c, 'x-api-key': _k, 'content-length': _l, connection: _n, ...rest } = headers
  return rest
}

/** The caller goes through the SDK as what it was authenticated as. */
function authOf(caller: McpCaller) {
  return { token: '', clientId: caller.principal.kind, scopes: [], extra: { caller } }
}
function callerIn(extra: Readonly<Record<string, unknown>> | undefined, fallback?: McpCaller): McpCaller {
  const caller = extra?.['caller'] as McpCaller | undefined
  if (caller) return caller
  if (!fallback) throw new Error('a request of MCP without its caller')
  return fallback
}

function requestIds(body: unknown): readonly RequestId[] {
  const all: readonly unknown[] = Array.isArray(body) ? body : [body]
  return all.flatMap((one) => (isObject(one) && 'method' in one && isId(one['id']) ? [one['id']] : []))
}
function cancelledIds(body: unknown): readonly RequestId[] {
  const all: readonly unknown[] = Array.isArray(body) ? body : [body]
  return all.flatMap((one) => {
    if (!isObject(one) || one['method'] !== 'notifications/cancelled' || !isObject(one['params'])) return []
    const { requestId } = one['params']
    return isId(requestId) ? [requestId] : []
  })
}
const isId = (id: unknown): id is RequestId => typeof id === 'string' || typeof id === 'number'
function idOf(body: unknown): RequestId | null {
  return isObject(body) && isId(body['id']) ? body['id'] : null
}

function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return reply(JSON.stringify(body), { 'content-type': 'application/json', ...headers }, status)
}
export function failure(status: number, code: number, message: string, id: RequestId | null = null): Reply {
  return json(status, { jsonrpc: '2.0', error: { code, message }, id })
}

/** What the SDK answered. A stream of a session is bounded by its transport, and counts as running until it ends. */
async function toReply(answer: Response, session: Session | undefined, ids: readonly RequestId[] = []): Promise<Reply> {
  const headers: Record<string, string> = {}
  for (const name of ['content-type', 'mcp-session-id', 'x-accel-buffering', 'allow']) {
    const value = answer.headers.get(name)
    if (value !== null) headers[name] = value
  }
  const isStream = headers['content-type'] === 'text/event-stream'
  // Nothing runs: it was refused.
  if (!isStream) session?.transport.refused(ids)
  if (!answer.body) return reply(null, headers, answer.status)
  if (!isStream) return reply(await answer.text(), headers, answer.status)
  const body = answer.body as ReadableStream<Uint8Array>
  if (!session) return reply(body as unknown as AsyncIterable<Uint8Array>, headers, answer.status)
  return reply(session.transport.metered(body, ids), headers, answer.status)
}
