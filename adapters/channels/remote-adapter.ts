import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import type { Logger, RemoteEnd } from 'svc/sdk'
import type {
  ChannelAdapter,
  ChannelConnection,
  ChannelDeclaration,
  ChannelLink,
  ChannelState,
  WebhookAnswer,
} from './channel.ts'
import type { OutboundMessage } from './message.ts'

interface LinkFacts {
  readonly accountId: string
  readonly config: unknown
  readonly link: number
  readonly network: number
}
interface WebhookFacts {
  readonly method: 'GET' | 'POST'
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}
/** Questions that the daemon asks without waiting for an answer. */
const SYNCHRONOUS = ['matchesSender', 'usesSignIn'] as const
const OPTIONAL = ['edit', 'delete', 'readAttachment', 'typing', 'react', 'webhook', 'warnings'] as const

/** In the process of the plugin: the adapter for the daemon to call. */
export function exposeAdapter(remote: RemoteEnd, { name, load, setup }: ChannelDeclaration): number {
  return remote.expose({
    setup: async () => (await setup?.())?.default,
    async load() {
      const { default: adapter } = await load()
      for (const member of SYNCHRONOUS)
        if (adapter[member])
          throw new Error(`channel "${name}": ${member} is not available with isolation = "worker"; leave it out`)
      return {
        object: exposeLoaded(remote, adapter),
        config: remote.describeSchema(adapter.config),
        capabilities: adapter.capabilities,
        silenceMs: adapter.silenceMs,
        members: adapter.signIn ? ['signIn'] : [],
      }
    },
  })
}

function exposeLoaded(remote: RemoteEnd, adapter: ChannelAdapter): number {
  const ends = new Map<number, AbortController>()
  const linkOf = (found: unknown): ChannelLink<Record<string, unknown>> => {
    const facts = found as LinkFacts
    const end = new AbortController()
    ends.set(facts.link, end)
    return createLink(remote, facts, v.parse(adapter.config, facts.config), end.signal)
  }
  return remote.expose({
    open: async ([link]) => exposeConnection(remote, await adapter.open(linkOf(link))),
    probe: ([link]) => adapter.probe(linkOf(link)),
    signIn: ([link]) => adapter.signIn?.(linkOf(link)),
    abort([link]) {
      ends.get(Number(link))?.abort(new Error('the connection ends'))
      ends.delete(Number(link))
    },
  })
}

function createLink(
  remote: RemoteEnd,
  { accountId, link, network }: LinkFacts,
  config: Record<string, unknown>,
  signal: AbortSignal,
): ChannelLink<Record<string, unknown>> {
  const tell = (method: string, ...args: readonly unknown[]): void => {
    remote.call(link, method, args).catch(() => undefined /* the connection has ended */)
  }
  const state = (name: string): ChannelState => ({
    read: async (key) => (await remote.call(link, `${name}.read`, [key])) as string | undefined,
    write: async (key, value) => void (await remote.call(link, `${name}.write`, [key, value])),
  })
  const log =
    (level: string) =>
    (...parts: readonly unknown[]) =>
      tell('log', level, ...parts.map((part) => (part instanceof Error ? part.stack : part)))
  return {
    ...remote.network(network),
    accountId,
    config,
    signal,
    async startProgram({ program }) {
      throw new Refusal('forbidden', `"${program}" is not started: only channels that are built in run programs`)
    },
    state: state('state'),
    secrets: state('secrets'),
    log: { error: log('error'), warn: log('warn'), info: log('info'), debug: log('debug') } satisfies Logger,
    now: () => Date.now(),
    sleep: (ms) => sleep(ms, signal),
    receive: async (message) => void (await remote.call(link, 'receive', [message])),
    heard: () => tell('heard'),
  }
}
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal.addEventListener('abort', stop, { once: true })
  })
}

function exposeConnection(remote: RemoteEnd, connection: ChannelConnection): object {
  const messageOf = (found: unknown, contents: unknown): OutboundMessage => {
    const message = found as OutboundMessage
    return {
      ...message,
      attachments: message.attachments.map((attachment, index) => ({
        ...attachment,
        bytes: async () => (await remote.call(Number(contents), String(index), [])) as Uint8Array,
      })),
    }
  }
  const object = remote.expose({
    closed: () => connection.closed,
    send: ([message, contents]) => connection.send(messageOf(message, contents)),
    edit: ([message, contents, sent]) => connection.edit?.(sent as never, messageOf(message, contents)),
    delete: ([sent, to]) => connection.delete?.(sent as never, to as never),
    warnings: () => connection.warnings?.(),
    typing: ([to]) => connection.typing?.(to as never),
    react: ([to, id, emoji]) => connection.react?.(to as never, String(id), String(emoji)),
    readAttachment: ([reference], signal) => connection.readAttachment?.(reference as never, signal),
    webhook: ([request]) => answerWebhook(connection, request as WebhookFacts),
    async dispose() {
      remote.release(object)
      await connection[Symbol.asyncDispose]()
    },
  })
  return { object, members: OPTIONAL.filter((member) => connection[member] !== undefined) }
}

async function answerWebhook(
  connection: ChannelConnection,
  { method, query, headers, body }: WebhookFacts,
): Promise<WebhookAnswer | undefined> {
  return await connection.webhook?.({
    method,
    query: new URLSearchParams(query),
    header: (name) => headers[name],
    headers: () => headers,
    body,
  })
}
