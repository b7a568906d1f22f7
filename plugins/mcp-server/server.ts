import { ProtocolError, Server } from '@modelcontextprotocol/server'
import type { JSONRPCMessage, Result, ServerCapabilities, ServerContext, Transport } from '@modelcontextprotocol/server'
import { messageOf, readHops } from 'svc/internal'
import type { HopLimit } from 'svc/internal'
import { isObject, readJson, Refusal } from 'svc/sdk'
import type { ToolClient, ToolProgress } from 'svc/sdk'
import { DAEMON_CLIENT, HOP_COUNT } from '../mcp/contract.ts'
import type { McpBackend, McpCall, McpCaller } from './backend/backend.ts'
import { isLogged } from './backend/log-levels.ts'
import type { McpObject } from './contract.ts'

/** The revisions of the handshake, newest first; what a client asks for beside them gets the newest. */
export const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

export interface ServedClientOptions {
  readonly backend: McpBackend
  readonly maxSubscriptions: number
  readonly hopLimit: HopLimit
  /** Asks and tells the client; `false` for one that cannot be asked. */
  readonly canAsk: boolean
  onDefect(error: unknown, method: string): void
  /** The caller of one request. */
  callerOf(ctx: ServerContext): McpCaller
}
/** A server of the SDK, and what belongs to its client. */
export interface ServedClient {
  readonly server: Server
  /** Stops following. */
  close(): void
}

type Handle = (method: string, answer: (params: McpObject, call: McpCall) => Promise<McpObject>) => void
/** The level from which on the client wants messages of a server behind the daemon. */
interface LeastLevel {
  level?: string
}

const INVALID_PARAMS = -32_602
const INTERNAL_ERROR = -32_603

/** The SDK answers params of another form with all that it found, as an error of its own. */
class ReadableServer extends Server {
  override connect(transport: Transport): Promise<void> {
    const send = transport.send.bind(transport)
    transport.send = (message, options) => send(withReadableError(message), options)
    return super.connect(transport)
  }
}
function withReadableError(message: JSONRPCMessage): JSONRPCMessage {
  if (!('error' in message)) return message
  const { error } = message
  const text = /^(?:Invalid [\w/]+ request: )?(?<issues>\[\s*\{.*\])$/s.exec(error.message)?.groups?.['issues']
  const issue = text === undefined ? undefined : firstIssue(text)
  if (issue === undefined) return message
  return { ...message, error: { ...error, code: INVALID_PARAMS, message: issue } }
}
function firstIssue(text: string): string | undefined {
  try {
    const [issue] = readJson(text) as readonly { readonly path?: unknown; readonly message?: unknown }[]
    return Array.isArray(issue?.path) && issue.path[0] === 'params'
      ? `${issue.path.slice(1).join('.')}: ${String(issue.message)}`
      : undefined
  } catch {
    return undefined
  }
}

/** Serves one client, or one request, by a backend. */
export function serveClient(options: ServedClientOptions): ServedClient {
  const { backend, onDefect } = options
  const server = new ReadableServer(backend.info, {
    capabilities: backend.capabilities as ServerCapabilities,
    supportedProtocolVersions: [...REVISIONS],
    ...(backend.instructions !== undefined && { instructions: backend.instructions }),
  })
  const followed = new Set<string>()
  const least: LeastLevel = {}
  const handle: Handle = (method, answer) => {
    if (!hasCapability(backend.capabilities, method)) return
    server.setRequestHandler(method as 'ping', async (request: { params?: unknown }, ctx: ServerContext) => {
      try {
        const params = isObject(request.params) ? request.params : {}
        return (await answer(params, callOf(server, ctx, options, least))) as Result
      } catch (error) {
        // Nobody reads the answer to a request that was cancelled.
        const onUnknown = (): void => void (ctx.mcpReq.signal.aborted || onDefect(error, method))
        throw toProtocolError(error, onUnknown)
      }
    })
  }
  handle('tools/list', (params, call) => backend.listTools(params, call))
  handle('tools/call', (params, call) => backend.callTool(params, call))
  handle('resources/list', (params, call) => backend.listResources(params, call))
  handle('resources/templates/list', (params, call) => backend.listResourceTemplates(params, call))
  handle('resources/read', (params, call) => backend.readResource(params, call))
  handle('prompts/list', (params, call) => backend.listPrompts(params, call))
  handle('prompts/get', (params, call) => backend.getPrompt(params, call))
  handle('completion/complete', (params, call) => backend.complete(params, call))
  answerFollowing(handle, options, followed)
  if (backend.setLevel)
    handle('logging/setLevel', async ({ level }) => {
      least.level = String(level)
      await backend.setLevel?.(server, least.level)
      return {}
    })
  const stop = follow(server, backend, followed, least)
  // The server behind the daemon may be gone, or refuse: then nobody follows there.
  const leave = (work: Promise<void> | undefined): void =>
    void work?.catch((error: unknown) => toProtocolError(error, () => onDefect(error, 'the end of a session')))
  return {
    server,
    close() {
      stop()
      for (const uri of followed) leave(backend.unsubscribe(uri))
      leave(backend.dropLevel?.(server))
      followed.clear()
    },
  }
}

function answerFollowing(
  handle: Handle,
  { backend, maxSubscriptions }: ServedClientOptions,
  followed: Set<string>,
): void {
  handle('resources/subscribe', async ({ uri }, call) => {
    const name = String(uri)
    if (!followed.has(name)) {
      if (followed.size >= maxSubscriptions)
        throw new ProtocolError(
          INVALID_PARAMS,
          `This session follows ${followed.size} resources, which is all plugins.mcp-server.max_subscriptions allows`,
        )
      await backend.subscribe(name, call)
      followed.add(name)
    }
    return {}
  })
  handle('resources/unsubscribe', async ({ uri }) => {
    if (followed.delete(String(uri))) await backend.unsubscribe(String(uri))
    return {}
  })
}

/** Passes on what changes. A client that has not shaken hands yet, or has left, is told nothing. */
function follow(server: Server, backend: McpBackend, followed: ReadonlySet<string>, least: LeastLevel): () => void {
  let isReady = false
  server.oninitialized = () => {
    isReady = true
  }
  const tell = (method: string, params?: McpObject): void => {
    if (!isReady) return
    server.notification({ method, ...(params && { params: { ...params } }) } as never).catch(() => undefined)
  }
  return backend.onChanged((changed) => {
    if ('list' in changed) tell(`notifications/${changed.list}/list_changed`)
    else if ('uri' in changed) {
      if (followed.has(changed.uri)) tell('notifications/resources/updated', { uri: changed.uri })
    } else if (isReady && isLogged(changed.message['level'], least.level))
      server.sendLoggingMessage(changed.message as never).catch(() => undefined)
  })
}

function hasCapability(capabilities: McpObject, method: string): boolean {
  const [area = ''] = method.split('/')
  const name = area === 'completion' ? 'completions' : area
  const own = capabilities[name]
  if (!isObject(own)) return false
  return method.endsWith('subscribe') ? own['subscribe'] === true : true
}

function callOf(
  server: Server,
  ctx: ServerContext,
  { canAsk, callerOf, hopLimit }: ServedClientOptions,
  least: LeastLevel,
): McpCall {
  const { mcpReq } = ctx
  const token = mcpReq._meta?.progressToken
  const tell = (work: Promise<unknown>): void => void work.catch(() => undefined)
  const progress = (step: ToolProgress): void =>
    tell(mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token ?? '', ...step } }))
  const client: ToolClient = {
    get abilities() {
      return canAsk ? { ...server.getClientCapabilities() } : {}
    },
    async request(method, params, signal) {
      if (!canAsk) throw new Error('This client cannot be asked: it has no session')
      // A person may answer; the signal ends it.
      const timeout = MAX_TIMEOUT_MS
      return await mcpReq.send({ method: method as 'ping', params: { ...params } }, { signal, timeout })
    },
    notify(method, params) {
      if (method === 'notifications/message') {
        const { level, data, logger } = params
        if (isLogged(level, least.level))
          tell(mcpReq.log(level as 'info', data, typeof logger === 'string' ? logger : undefined))
      } else tell(mcpReq.notify({ method, params: { ...params } } as never))
    },
  }
  return {
    ...callerOf(ctx),
    signal: mcpReq.signal,
    progress: token === undefined ? undefined : progress,
    client,
    isDaemon: server.getClientVersion()?.name === DAEMON_CLIENT,
    hops: readHops(mcpReq._meta?.[HOP_COUNT], hopLimit),
  }
}
const MAX_TIMEOUT_MS = 2_147_483_647

/** A refusal is the client's to read; anything else is a defect of the daemon that is told without details. */
export function toProtocolError(error: unknown, onDefect: () => void): Error {
  if (error instanceof ProtocolError) return error
  if (error instanceof Refusal) return new ProtocolError(codeOf(error), error.message, detailsOf(error))
  if (isRequestError(error)) return new ProtocolError(error.code, error.message, error.data)
  if (error instanceof Error && (error.name === 'UpstreamFailure' || error.name === 'AbortError'))
    return new ProtocolError(INTERNAL_ERROR, messageOf(error))
  onDefect()
  return new ProtocolError(INTERNAL_ERROR, 'The request failed inside the daemon; its log says why')
}
const REFUSAL_CODES: Readonly<Record<string, number>> = {
  invalid_request: INVALID_PARAMS,
  agent_not_found: -32_001,
  not_found: INVALID_PARAMS,
  internal: INTERNAL_ERROR,
}
function codeOf({ code }: Refusal): number {
  return REFUSAL_CODES[code] ?? (code.endsWith('_not_found') ? INVALID_PARAMS : -32_000)
}
function detailsOf({ code, details }: Refusal): McpObject {
  return { ...details, code }
}
function isRequestError(error: unknown): error is Error & { readonly code: number; readonly data: unknown } {
  return error instanceof Error && error.name === 'McpRequestError' && 'code' in error && typeof error.code === 'number'
}
