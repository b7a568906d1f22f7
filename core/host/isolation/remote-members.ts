import type { PluginContext } from '../context.ts'
import type { Tokens } from '../define.ts'
import type { Value } from '../../storage/database.ts'
import { toStatement } from '../../storage/text.ts'
import type { SqlPart } from '../../storage/text.ts'
import { notAvailable } from './crossing.ts'
import type { Peer } from './peer.ts'
import type { Registration } from './shapes.ts'

type Context = PluginContext<Readonly<Record<string, unknown>>, Tokens, Tokens>
type Remote = Pick<Context, 'storage' | 'vault' | 'db' | 'metrics' | 'log' | 'credentials' | 'listen' | 'spawn'>

/** Members of the context whose work the daemon does. */
export function remoteMembers(peer: Peer, register: (registration: Registration) => void): Remote {
  const unsupported = (member: string) => (): never => notAvailable(`ctx.${member}`)
  const refused = (member: string) => async (): Promise<never> => notAvailable(`ctx.${member}`)
  return {
    storage: remoteObject(peer, 'storage', ['getItem', 'setItem', 'hasItem', 'removeItem', 'getKeys', 'clear']),
    vault: remoteVault(peer),
    db: remoteDatabase(peer),
    metrics: remoteMetrics(peer, register),
    log: remoteObject(peer, 'log', ['error', 'warn', 'info', 'debug']),
    credentials: {
      accept: unsupported('credentials.accept'),
      holds: unsupported('credentials.holds'),
      checkAttempts: unsupported('credentials.checkAttempts'),
      failed: unsupported('credentials.failed'),
    },
    listen: refused('listen'),
    spawn: {
      find: refused('spawn.find'),
      has: unsupported('spawn.has'),
      start: refused('spawn.start'),
      isolation: refused('spawn.isolation'),
      checkFolders: unsupported('spawn.checkFolders'),
      checkWorkspace: unsupported('spawn.checkWorkspace'),
      protectedFolders: unsupported('spawn.protectedFolders'),
      exposed: unsupported('spawn.exposed'),
    },
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

function remoteVault(peer: Peer): Context['vault'] {
  const vault = remoteObject<Context['vault']>(peer, 'vault', ['read', 'write', 'remove', 'names'])
  return {
    ...vault,
    write: async (name, secret, entries) =>
      entries ? notAvailable('ctx.vault.write with statements') : await vault.write(name, secret),
    remove: async (name, entries) =>
      entries ? notAvailable('ctx.vault.remove with statements') : await vault.remove(name),
  }
}

function remoteDatabase(peer: Peer): Context['db'] {
  const run = (
    method: string,
    template: TemplateStringsArray,
    parts: readonly (Value | SqlPart)[],
  ): Promise<unknown> => {
    const { sql, values } = toStatement(template, parts)
    return peer.call('db', { method, sql: [sql], values })
  }
  return {
    dialect: 'sqlite',
    all: (sql, ...values) => run('all', sql, values) as Promise<never[]>,
    one: (sql, ...values) => run('one', sql, values) as Promise<undefined>,
    run: (sql, ...values) => run('run', sql, values) as Promise<{ changes: number }>,
    sql: (sql, ...values) => toStatement(sql, values),
    batch: (statements) =>
      peer.call('batch', { statements: statements.map(({ sql, values }) => ({ sql, values })) }) as Promise<never[]>,
  }
}

function remoteMetrics(peer: Peer, register: (registration: Registration) => void): Context['metrics'] {
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
    observed: () => notAvailable('ctx.metrics.observed'),
  }
}
