import type { Fetch, OutboundResponse } from '../../net/fetch.ts'
import { PluginProblem } from '../definition.ts'
import type { PluginContext } from '../context.ts'
import type { Tokens } from '../define.ts'
import type { Statement, Value } from '../../storage/database.ts'
import { readJson } from '../../schema/nesting.ts'
import type { Peer } from './peer.ts'
import type { Registration } from './shapes.ts'

type Context = PluginContext<Readonly<Record<string, unknown>>, Tokens, Tokens>
type Remote = Pick<
  Context,
  'storage' | 'vault' | 'db' | 'metrics' | 'fetch' | 'admit' | 'log' | 'credentials' | 'spawn' | keyof Sockets
>
type Sockets = Pick<Context, 'connect' | 'startTls' | 'webSocket'>

/** Members of the context whose work the daemon does. */
export function remoteMembers(peer: Peer, register: (registration: Registration) => void): Remote {
  const unsupported = (): never => {
    throw new PluginProblem('this is not available to a plugin in a process of its own')
  }
  const refused = async (): Promise<never> => unsupported()
  return {
    storage: remoteObject(peer, 'storage', ['getItem', 'setItem', 'hasItem', 'removeItem', 'getKeys', 'clear']),
    vault: remoteObject(peer, 'vault', ['read', 'write', 'remove', 'names']),
    db: remoteDatabase(peer),
    metrics: remoteMetrics(peer, register, unsupported),
    fetch: remoteFetch(peer),
    admit: async (url) => {
      await peer.call('admit', String(url))
    },
    log: remoteObject(peer, 'log', ['error', 'warn', 'info', 'debug']),
    credentials: { accept: unsupported, holds: unsupported, checkAttempts: unsupported, failed: unsupported },
    spawn: {
      find: refused,
      has: () => false,
      start: refused,
      isolation: refused,
      checkFolders: unsupported,
      checkWorkspace: unsupported,
      protectedFolders: unsupported,
      exposed: unsupported,
    },
    connect: refused,
    startTls: refused,
    webSocket: refused,
  }
}

/** An object whose methods are called in the daemon. */
function remoteObject<T extends object>(peer: Peer, name: string, methods: readonly (keyof T & string)[]): T {
  const entries = methods.map((method) => {
    const call = (...input: readonly unknown[]): Promise<unknown> => {
      const answer = peer.call(name, { method, args: input.map((one) => (one instanceof Error ? one.stack : one)) })
      // A line of the log is not awaited.
      if (name === 'log') answer.catch(() => undefined)
      return answer
    }
    return [method, call] as const
  })
  return Object.fromEntries(entries) as T
}

function remoteDatabase(peer: Peer): Context['db'] {
  const run = (method: string, sql: readonly string[], values: readonly Value[]): Promise<unknown> =>
    peer.call('db', { method, sql: [...sql], values })
  return {
    dialect: 'sqlite',
    all: (sql, ...values) => run('all', sql, values) as Promise<never[]>,
    one: (sql, ...values) => run('one', sql, values) as Promise<undefined>,
    run: (sql, ...values) => run('run', sql, values) as Promise<{ changes: number }>,
    sql: (sql, ...values): Statement => ({ sql: sql.join('?'), values }),
    batch: (statements) =>
      peer.call('batch', { statements: statements.map(({ sql, values }) => ({ sql, values })) }) as Promise<never[]>,
  }
}

function remoteMetrics(
  peer: Peer,
  register: (registration: Registration) => void,
  unsupported: () => never,
): Context['metrics'] {
  const tell = (key: string, value: number, labels: unknown): void => {
    peer.call('measure', { key, value, labels }).catch(() => undefined /* the daemon has logged it */)
  }
  return {
    counter: (name, help) => {
      register({ kind: 'metric', key: `metric ${name}`, type: 'counter', name, help })
      return { add: (amount = 1, labels) => tell(`metric ${name}`, amount, labels) }
    },
    gauge: (name, help) => {
      register({ kind: 'metric', key: `metric ${name}`, type: 'gauge', name, help })
      return { set: (value, labels) => tell(`metric ${name}`, value, labels) }
    },
    histogram: (name, help, bounds) => {
      register({ kind: 'metric', key: `metric ${name}`, type: 'histogram', name, help, bounds: [...bounds] })
      return { observe: (value, labels) => tell(`metric ${name}`, value, labels) }
    },
    observed: unsupported,
  }
}

interface RemoteResponse {
  readonly status: number
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}
/** The whole answer is read before it crosses. */
function remoteFetch(peer: Peer): Fetch {
  return async (url, request = {}) => {
    const { signal, check: _, owner: __, ...rest } = request
    return toResponse((await peer.call('fetch', { url: String(url), request: rest }, signal)) as RemoteResponse)
  }
}
function toResponse({ status, url, headers, body }: RemoteResponse): OutboundResponse {
  const text = (): string => new TextDecoder().decode(body)
  return {
    status,
    ok: status >= 200 && status < 300,
    url,
    header: (name) => headers.find(([one]) => one === name.toLowerCase())?.[1],
    async *chunks() {
      yield body
    },
    text: async () => text(),
    json: async () => readJson(text()),
    bytes: async () => body,
    toResponse: () =>
      new Response(status === 204 || status === 304 ? null : Buffer.from(body), {
        status,
        headers: headers.map(([name, value]) => [name, value] as [string, string]),
      }),
  }
}
