import { existsSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { StartRefused } from '../errors/start-refused.ts'
import { parseListenAddr } from '../config/listen.ts'
import { CoreSchema } from '../config/schema.ts'
import { knownKeys } from '../config/shape.ts'
import { findNearest } from '../schema/nearest.ts'
import type { Config, LoadedConfig } from '../config/load.ts'
import { HomeInUse } from '../storage/lock.ts'
import { DatabaseRefused, snapshots } from '../storage/sqlite-file.ts'
import { DatabaseIncomplete } from '../storage/missing-tables.ts'
import { VaultKeyRefused } from '../storage/vault-file.ts'
import { codeOf, isLost, isServerAway } from '../storage/failure.ts'
import { exits, Failure } from './failure.ts'
import { commandLine, commandName } from '../process/command-name.ts'

/** Why the daemon did not start, with what to do about it; anything else stays as it is. */
export function explainStart(error: unknown, config: Config): unknown {
  if (error instanceof HomeInUse) return explainInUse(error, config)
  if (error instanceof DatabaseRefused) return explainDatabase(error, config)
  if (error instanceof VaultKeyRefused) return explainVaultKey(error)
  if (error instanceof StartRefused) return new Failure(exits.config, error.message, error.advice, { cause: error })
  if (error instanceof DatabaseIncomplete)
    return new Failure(exits.failed, error.message, 'nothing was changed', { cause: error })
  return (
    explainServer(error, config.database_url) ??
    explainCertificate(error, config) ??
    explainListen(error, config) ??
    explainFullDisk(error, config) ??
    explainFolder(error, config) ??
    error
  )
}

/** A daemon that is to share a database is told of none. `given`: the key that says so. */
export function explainAlone(given: string, { config, sources }: LoadedConfig): Failure {
  const names = knownKeys(CoreSchema)
  const meant = Object.keys(config)
    .filter((key) => !names.includes(key) && findNearest(key, names) === 'database_url')
    .map((key) => `${sources.get(key) ?? 'configuration'}: unknown key "${key}"; did you mean "database_url"?`)
  return new Failure(
    exits.config,
    [`database_url is missing, although ${given} is there for several daemons on one database`, ...meant].join('\n'),
    'set database_url (postgres://…), or sqlite:<path> for a daemon of its own',
  )
}

function explainInUse(error: HomeInUse, { home_dir: home }: Config): Failure {
  const address = error.address === undefined ? '' : `, ${error.address}`
  return new Failure(
    exits.inUse,
    `another svc (process ${error.pid}${address}) already uses the home ${home}`,
    `stop it with ${commandLine('stop')}, or choose another home with --home`,
    { cause: error },
  )
}

function explainVaultKey(error: VaultKeyRefused): Failure {
  return new Failure(
    exits.config,
    error.message,
    'give this daemon the key of the others: copy vault.key of a home, or set SVC_VAULT_KEY or vault_key_file',
    { cause: error },
  )
}

function explainDatabase(error: DatabaseRefused, { home_dir: home }: Config): Failure {
  const [copy] = snapshots(error.path)
  const restore = commandLine(`restore <backup.zip> --home ${home}`)
  const advice =
    copy === undefined
      ? `there is no copy of it yet; ${restore} puts a backup in its place`
      : `${commandName()} restore ${copy} --home ${home}`
  return new Failure(exits.failed, error.message, advice, { cause: error })
}

function explainCertificate(error: unknown, { http }: Config): Failure | undefined {
  const path = error instanceof Error && 'path' in error ? error.path : undefined
  const key = (['tls_cert', 'tls_key'] as const).find((name) => path !== undefined && path === http[name])
  if (key === undefined) return undefined
  return new Failure(
    exits.config,
    `http.${key}: ${String(path)} cannot be read (${codeOf(error)})`,
    'name a PEM file this user may read, or leave both out for a certificate made at start',
    { cause: error },
  )
}

function explainListen(error: unknown, config: Config): Failure | undefined {
  const { host, port } = parseListenAddr(config.listen_addr)
  const options = { cause: error }
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'EADDRINUSE':
      return new Failure(
        exits.inUse,
        `port ${port} on ${host} is taken by another program`,
        'choose another one with --port (0 takes a free one), or stop that program',
        options,
      )
    case 'EADDRNOTAVAIL':
      return new Failure(
        exits.failed,
        `this machine has no address ${host}`,
        'choose one it has with --host, such as 127.0.0.1',
        options,
      )
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new Failure(
        exits.failed,
        `the name ${host} has no address`,
        'choose an address with --host, such as 127.0.0.1',
        options,
      )
    case 'EACCES':
    case 'EPERM':
      if (!(error instanceof Error && 'syscall' in error && error.syscall === 'listen')) return undefined
      return new Failure(
        exits.refused,
        `port ${port} may not be opened by this user`,
        'choose one above 1023 with --port',
        options,
      )
    default:
      return undefined
  }
}

function explainFullDisk(error: unknown, config: Config): Failure | undefined {
  const code = codeOf(error) || codeOf(error instanceof Error ? error.cause : undefined)
  if (!['SQLITE_FULL', 'ENOSPC', 'EDQUOT'].includes(code)) return undefined
  const folders = [...new Set([config.home_dir, config.data_dir])]
  const full = folders.find(hasNoSpace) ?? config.home_dir
  return new Failure(exits.failed, `the disk of ${full} is full`, 'free some space there, then start again', {
    cause: error,
  })
}
/** Less than what the first writes of a start need. */
const MIN_FREE_BYTES = 1_048_576
function hasNoSpace(folder: string): boolean {
  if (!existsSync(folder)) return false
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize < MIN_FREE_BYTES
}

function explainFolder(error: unknown, { home_dir: home }: Config): Failure | undefined {
  if (!(error instanceof Error && 'syscall' in error && 'path' in error)) return undefined
  if (error.path === join(home, 'daemon.lock'))
    return new Failure(
      exits.config,
      `the home ${home} cannot be used (${codeOf(error)})`,
      'make it writable for this user, or choose another one with --home',
      { cause: error },
    )
  if (error.syscall !== 'mkdir') return undefined
  return new Failure(
    exits.config,
    `the folder ${String(error.path)} cannot be made (${codeOf(error)})`,
    'make it by hand, or correct the key that names it (data_dir, database_url)',
    { cause: error },
  )
}

/** Why a PostgreSQL server lets nobody in; `undefined` for any other failure. */
export function explainServer(error: unknown, url: string): Failure | undefined {
  if (!/^postgres(ql)?:/.test(url) || !(error instanceof Error)) return undefined
  const shown = url.replace(/\/\/[^@/]*@/, '//***@')
  const isAway = isServerAway(error)
  const reason = error instanceof Refusal && error.cause instanceof Error ? error.cause : error
  const code = codeOf(reason)
  const advice =
    isAway || isLost(code)
      ? 'start the server, see that this machine reaches it, or correct database_url'
      : code.startsWith('28')
        ? 'correct user and password in database_url, or set PGPASSWORD'
        : code === '3D000'
          ? 'make it with `createdb`, or correct database_url'
          : code === '42501'
            ? 'grant the role in database_url CREATE on its schema, and the role that owns the tables'
            : code === '25006'
              ? 'name the server that takes writes, or see default_transaction_read_only of the database and the role'
              : undefined
  return advice === undefined
    ? undefined
    : new Failure(
        exits.failed,
        `${shown} cannot be used: ${reason instanceof Error && reason.message !== '' ? reason.message : code}`,
        advice,
        { cause: error },
      )
}
