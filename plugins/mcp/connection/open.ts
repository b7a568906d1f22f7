import type {
  Client,
  ClientCapabilities,
  ClientOptions,
  CreateMessageResult,
  ElicitResult,
  ListRootsResult,
  JsonSchemaType,
  OAuthClientProvider,
  Transport,
} from '@modelcontextprotocol/client'
import { monotonicClock, toIso } from 'svc/internal'
import type { Fetch, Spawn } from 'svc/sdk'
import type { Settings } from '../config.ts'
import { DAEMON_CLIENT } from '../contract.ts'
import type { McpCaller, McpChange } from '../contract.ts'
import type { ServerLog } from '../servers/log.ts'
import type { Program } from '../servers/program.ts'
import { isSecretName } from '../servers/redactor.ts'
import type { ServerConfig } from '../servers/spec.ts'
import type { ClientFeatures, ServerRequestMethod } from './features.ts'
import { deliverInOrder } from './in-order.ts'
import { explainEnd } from './explain-end.ts'
import { httpLimits, toPlatformFetch } from './http-fetch.ts'
import { safeSchema } from './output-schema.ts'
import { Session } from './session.ts'
import { StdioTransport } from './stdio.ts'

/** How long a server may take to forget its session. */
const GOODBYE_MS = 1000

export interface OpenDeps {
  readonly settings: Settings
  readonly features: ClientFeatures
  readonly version: string
  readonly spawn: Spawn
  /** The network for this server. */
  readonly fetchOf: (server: ServerConfig) => Fetch
  /** What the program of a server is started with. */
  readonly programOf: (server: ServerConfig) => Promise<Program>
  readonly headersOf: (server: ServerConfig) => Promise<Readonly<Record<string, string>>>
}
interface Link {
  readonly transport: Transport
  readonly pid: () => number | undefined
  readonly reason: () => string | undefined
  /** What the confinement of the program has to do with its end, as the rest of a sentence. */
  readonly explanation?: () => Promise<string>
  readonly end: () => Promise<void>
}

/**
 * Connects to a server. Rejects with what went wrong, and leaves neither a program nor a connection then. `log` gets
 * what the program writes beside the protocol.
 */
export async function openSession(
  deps: OpenDeps,
  server: ServerConfig,
  log: ServerLog,
  signal: AbortSignal,
): Promise<Session> {
  const { settings, features } = deps
  const sdk = await import('@modelcontextprotocol/client')
  const { AjvJsonSchemaValidator } = await import('@modelcontextprotocol/client/validators/ajv')
  const calls = new Set<McpCaller>()
  const link = server.transport === 'stdio' ? await openProgram(deps, server, log) : await openHttp(deps, server, log)
  const listeners: { changed: (change: McpChange) => void } = { changed: () => undefined }
  const onList = (kind: 'tools' | 'prompts' | 'resources') => ({
    autoRefresh: false,
    debounceMs: 50,
    onChanged: () => listeners.changed({ kind }),
  })
  const client = new sdk.Client(
    { name: DAEMON_CLIENT, title: 'svc', version: deps.version },
    {
      capabilities: features.capabilities(server) as ClientCapabilities,
      jsonSchemaValidator: createValidator(new AjvJsonSchemaValidator()),
      listChanged: { tools: onList('tools'), prompts: onList('prompts'), resources: onList('resources') },
      versionNegotiation: { mode: server.protocol === 'auto' ? 'auto' : 'legacy' },
    },
  )
  const end = () => endLink(client, link)
  const session = new Session({ client, server, settings, calls, ...link, log, end })
  answerRequests(client, { features, server, calls, session, log })
  listeners.changed = (change) => session.changed(change)
  client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
    session.changed({ kind: 'resource', uri: params.uri }),
  )
  client.setNotificationHandler('notifications/message', ({ params }) =>
    session.changed({ kind: 'message', params: log.hideIn({ ...params }) }),
  )
  const timeout = settings.start_timeout_secs * 1000
  try {
    await client.connect(deliverInOrder(link.transport), { timeout, maxTotalTimeout: timeout, signal })
  } catch (error) {
    const why = link.reason()
    await session.end('it was not connected')
    throw why === undefined ? error : new Error(`${why}${(await link.explanation?.()) ?? ''}`, { cause: error })
  }
  return session
}

async function openProgram(deps: OpenDeps, server: ServerConfig, log: ServerLog): Promise<Link> {
  const { settings, spawn } = deps
  const { request, secrets, credentials } = await deps.programOf(server)
  log.begin(secrets, credentials)
  let failure: string | undefined
  const transport = new StdioTransport({
    start: (started) => spawn.start(started),
    request: {
      ...request,
      onConnectionFailure(_, why) {
        failure = why
        log.note(toIso(Date.now()), `a connection of the program failed: ${why}`)
      },
    },
    limits: {
      maxMessageBytes: settings.max_message_bytes,
      maxBrokenMessages: settings.max_broken_messages,
      maxMessagesPerSecond: settings.max_messages_per_second,
      maxWaitingBytes: settings.max_waiting_bytes,
    },
    log: (text) => log.add(text),
  })
  return {
    transport,
    pid: () => transport.pid,
    reason: () => transport.reason,
    explanation: () => explainEnd(request, failure),
    end: () => transport.close(),
  }
}

async function openHttp(deps: OpenDeps, server: ServerConfig, log: ServerLog): Promise<Link> {
  const { settings, features } = deps
  const { SSEClientTransport, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const guarded = deps.fetchOf(server)
  const send = toPlatformFetch(guarded, httpLimits(settings, server))
  const provider = (await features.authProvider(server, guarded)) as OAuthClientProvider | undefined
  const headers = await deps.headersOf(server)
  const credentials = Object.entries(headers).filter(([name]) => isSecretName(name))
  log.begin(
    Object.values(headers),
    credentials.map(([, value]) => value),
  )
  const options = {
    fetch(input: string | URL, init: RequestInit = {}) {
      const token = new Headers(init.headers).get('authorization')
      // What its owner wrote into the file or sent is known already.
      if (token !== null) log.useToken(token)
      return send(input, init)
    },
    requestInit: { headers: { ...headers } },
    ...(provider && { authProvider: provider }),
  }
  const url = new URL(server.url ?? '')
  const none = { pid: () => undefined, reason: () => undefined }
  if (server.transport === 'sse') {
    const transport = new SSEClientTransport(url, options)
    return { ...none, transport, end: () => transport.close() }
  }
  const transport = new StreamableHTTPClientTransport(url, options)
  return {
    ...none,
    transport,
    async end() {
      const cancel = monotonicClock.after(GOODBYE_MS, () => void transport.close())
      // A server that is gone, or that does not end sessions, has nothing to forget.
      await transport.terminateSession().catch(() => undefined)
      cancel()
      await transport.close()
    },
  }
}

async function endLink(client: Client, link: Link): Promise<void> {
  await link.end()
  await client.close()
}

/** Compiles each schema once. */
function createValidator(inner: NonNullable<ClientOptions['jsonSchemaValidator']>) {
  const compiled = new WeakMap<object, ReturnType<typeof inner.getValidator>>()
  return {
    getValidator<T>(schema: JsonSchemaType) {
      const known = compiled.get(schema as object)
      if (known) return known as ReturnType<typeof inner.getValidator<T>>
      const made = inner.getValidator<T>(safeSchema(schema) as JsonSchemaType)
      compiled.set(schema as object, made as ReturnType<typeof inner.getValidator>)
      return made
    },
  }
}

interface Answering {
  readonly features: ClientFeatures
  readonly server: ServerConfig
  readonly calls: ReadonlySet<McpCaller>
  readonly session: Pick<Session, 'pausedWhile'>
  readonly log: ServerLog
}
/** What a server asks of its client. Only what the client offers to it has a handler. */
function answerRequests(client: Client, { features, server, calls, session, log }: Answering): void {
  const offered = features.capabilities(server)
  const answer = (method: ServerRequestMethod, params: object | undefined, signal: AbortSignal) =>
    session.pausedWhile(() =>
      features.handle({ server, method, params: log.hideIn({ ...params }), calls: [...calls], signal }),
    )
  if ('sampling' in offered)
    client.setRequestHandler('sampling/createMessage', async ({ params }, { mcpReq }) => {
      return (await answer('sampling/createMessage', params, mcpReq.signal)) as unknown as CreateMessageResult
    })
  if ('elicitation' in offered)
    client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq }) => {
      return (await answer('elicitation/create', params, mcpReq.signal)) as unknown as ElicitResult
    })
  if ('roots' in offered)
    client.setRequestHandler('roots/list', async ({ params }, { mcpReq }) => {
      return (await answer('roots/list', params, mcpReq.signal)) as unknown as ListRootsResult
    })
}
