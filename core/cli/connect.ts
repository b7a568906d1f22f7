import type { Config } from '../config/schema.ts'
import { createDaemonClient, DaemonRefusal, DaemonUnreachable } from '../net/daemon-client.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import { commandLine } from '../process/command-name.ts'
import { exits, Failure } from './failure.ts'
import { commandFor, locateHome } from './home-location.ts'
import type { HomeLocation } from './home-location.ts'
import { note } from './output.ts'

export interface ClientArgs {
  readonly home?: string | undefined
  readonly config?: string | undefined
  readonly url?: string | undefined
}
export interface Connection {
  readonly client: DaemonClient
  readonly location: HomeLocation
  /** `undefined` with `--url`. */
  readonly pid: number | undefined
}

/**
 * The daemon that a command calls: the one of `--url` or `SVC_URL`, else the one that runs in the home. Throws a
 * `Failure` when none is known; the first request shows whether it answers.
 */
export async function connect(args: ClientArgs): Promise<Connection> {
  const location = locateHome(args)
  const config = await readConfig(location)
  const key = process.env['SVC_API_KEY']?.trim() || undefined
  const named = namedUrl(args)
  if (named !== undefined) {
    const url = toUrl(named)
    // The key of this home is not for whatever host somebody names.
    const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)
    const apiKey = key ?? (isLocal ? config?.api_key : undefined)
    return { location, pid: undefined, client: createDaemonClient({ url: url.href, apiKey }) }
  }
  const { readDaemonFile } = await import('../storage/lock.ts')
  const daemon = readDaemonFile(location.home)
  if (!daemon) throw notRunning(location)
  const url = daemonUrl(daemon.listenAddr)
  trustOwnCertificate(url)
  const { pid, pass } = daemon
  return { location, pid, client: createDaemonClient({ url, apiKey: config?.api_key ?? key, pass }) }
}

/** Whether there is a daemon to call: one is named, or one runs in the home. */
export async function hasDaemon(args: ClientArgs): Promise<boolean> {
  if (namedUrl(args) !== undefined) return true
  const { readDaemonFile } = await import('../storage/lock.ts')
  return readDaemonFile(locateHome(args).home) !== undefined
}

function namedUrl(args: ClientArgs): string | undefined {
  return args.url?.trim() || process.env['SVC_URL']?.trim() || undefined
}

/** Where a daemon of this machine is reached that says where it listens: an address alone means http. */
export function daemonUrl(listenAddr: string): string {
  const address = /^https?:\/\//.test(listenAddr) ? listenAddr : `http://${listenAddr}`
  return address.replace('//0.0.0.0', '//127.0.0.1').replace('//[::]', '//[::1]').replace(/\/+$/, '')
}
/**
 * A daemon of this user on this machine may have made its certificate itself; what is sent to it does not leave the
 * machine.
 */
export function trustOwnCertificate(url: string): void {
  if (!/^https:\/\/(127\.|localhost[:/]|\[::1\])/.test(url)) return
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  // Node warns of that with every command.
  process.removeAllListeners('warning')
}
export function notRunning(location: HomeLocation): Failure {
  return new Failure(
    exits.notRunning,
    `no svc is running in ${location.home}`,
    `start it with ${commandFor(location, 'start')}, or name another one with --home or --url`,
  )
}
function toUrl(text: string): URL {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`)
  if (url && /^https?:$/.test(url.protocol) && !url.username) return url
  throw new Failure(
    exits.usage,
    `--url: "${text}" is not the address of a daemon`,
    'it looks like http://127.0.0.1:4545',
  )
}
/** A broken configuration must not keep anybody from stopping or asking the daemon that runs. */
async function readConfig(location: HomeLocation): Promise<Config | undefined> {
  const { loadSettings } = await import('./settings.ts')
  const { ConfigError } = await import('../config/problem.ts')
  try {
    return (await loadSettings(location)).config
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    note(`svc: the configuration cannot be read, going on without it:\n${error.message}`)
    return undefined
  }
}

/** Runs the requests of a command; what the daemon refuses becomes a `Failure` that says what to do. */
export async function callDaemon<T>(connection: Connection, work: (client: DaemonClient) => Promise<T>): Promise<T> {
  try {
    return await work(connection.client)
  } catch (error) {
    throw explainError(error, connection)
  }
}
function explainKey(error: DaemonRefusal, url: string, home: string): Failure {
  const isWrong = error.message.startsWith('Invalid')
  return new Failure(
    exits.refused,
    `${url} ${isWrong ? 'does not accept this key' : 'asks for a key'}: ${error.message}`,
    `${isWrong ? 'correct' : 'set'} SVC_API_KEY, or api_key in ${home}/config.toml`,
    { cause: error },
  )
}

/** The `Failure` for an error of the daemon's client; any other error as it is. */
export function explainError(error: unknown, { client, location, pid }: Connection): unknown {
  if (error instanceof DaemonUnreachable) {
    return pid === undefined
      ? new Failure(exits.notRunning, error.message, 'check the address given with --url', { cause: error })
      : new Failure(
          exits.notRunning,
          `the svc of ${location.home} (process ${pid}) does not answer: ${error.message}`,
          `look at its log; ${commandFor(location, 'stop')} ends it, and kill -9 ${pid} one that hangs`,
          { cause: error },
        )
  }
  if (!(error instanceof DaemonRefusal)) return error
  switch (error.status) {
    case 401:
      return explainKey(error, client.url, location.home)
    case 403:
      return new Failure(exits.refused, error.message, undefined, { cause: error })
    case 404:
      return new Failure(exits.notFound, error.message, undefined, { cause: error })
    case 429:
      return new Failure(exits.failed, error.message, `wait ${error.retryAfterSecs ?? 60} seconds and try again`, {
        cause: error,
      })
    case 503:
      return new Failure(
        exits.failed,
        error.message,
        `${error.retryAfterSecs === undefined ? '' : `try again in ${error.retryAfterSecs} seconds; `}${commandLine('doctor')} says what is wrong`,
        { cause: error },
      )
    default:
      return new Failure(
        exits.failed,
        error.message,
        // Other statuses say why: only an error that nobody foresaw is explained by the log alone.
        error.status === 500 ? 'the log of the daemon says more' : undefined,
        { cause: error },
      )
  }
}
