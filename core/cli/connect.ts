import * as v from 'valibot'
import type { Config } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import { createDaemonClient, DaemonRefusal, DaemonUnreachable } from '../net/daemon-client.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import { readDaemonFile } from '../storage/lock.ts'
import { exits, Failure } from './failure.ts'
import { note } from './output.ts'
import { findPlace, loadSettings } from './settings.ts'
import type { Place } from './settings.ts'
import { commandLine } from '../process/command-name.ts'

export interface ClientArgs {
  readonly home?: string | undefined
  readonly config?: string | undefined
  readonly url?: string | undefined
}
export interface Connection {
  readonly client: DaemonClient
  readonly place: Place
  /** `undefined` with `--url`. */
  readonly pid: number | undefined
}

/** The daemon a command speaks to. Throws a `Failure` when no daemon is known; the first request tells whether it answers. */
export async function connect(args: ClientArgs): Promise<Connection> {
  const place = findPlace(args)
  const config = await readConfig(place)
  const named = args.url?.trim() || process.env['SVC_URL']?.trim()
  if (named) {
    const url = toUrl(named)
    // The key of this home is not for whatever host somebody names.
    const local = ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)
    return {
      place,
      pid: undefined,
      client: createDaemonClient({
        url: url.href,
        apiKey: process.env['SVC_API_KEY']?.trim() || (local ? config?.api_key : undefined),
      }),
    }
  }
  const daemon = readDaemonFile(place.home)
  if (!daemon) throw notRunning(place.home)
  const url = daemonUrl(daemon.listenAddr)
  trustOwnCertificate(url)
  return {
    place,
    pid: daemon.pid,
    client: createDaemonClient({ url, apiKey: config?.api_key ?? (process.env['SVC_API_KEY']?.trim() || undefined) }),
  }
}

/** Where a daemon of this machine is reached that says where it listens: an address alone means http. */
export function daemonUrl(listenAddr: string): string {
  const address = /^https?:\/\//.test(listenAddr) ? listenAddr : `http://${listenAddr}`
  return address.replace('//0.0.0.0', '//127.0.0.1').replace('//[::]', '//[::1]').replace(/\/+$/, '')
}
/** The daemon of this user on this machine may have made its certificate itself; nothing leaves the machine on this way. */
export function trustOwnCertificate(url: string): void {
  if (!/^https:\/\/(127\.|localhost[:/]|\[::1\])/.test(url)) return
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  // Node warns of that with every command.
  process.removeAllListeners('warning')
}
export function notRunning(home: string): Failure {
  return new Failure(
    exits.notRunning,
    `no svc is running in ${home}`,
    `start it with ${commandLine('start')}, or name another one with --home or --url`,
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
async function readConfig(place: Place): Promise<Config | undefined> {
  try {
    return (await loadSettings(place)).config
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    note(`svc: the configuration cannot be read, going on without it:\n${error.message}`)
    return undefined
  }
}

/** Runs a command's requests; what the daemon refuses becomes a failure that says what to do. */
export async function ask<T>(connection: Connection, work: (client: DaemonClient) => Promise<T>): Promise<T> {
  try {
    return await work(connection.client)
  } catch (error) {
    throw explain(error, connection)
  }
}
export function explain(error: unknown, { client, place, pid }: Connection): unknown {
  if (error instanceof DaemonUnreachable) {
    return pid === undefined
      ? new Failure(exits.notRunning, error.message, 'check the address given with --url', { cause: error })
      : new Failure(
          exits.notRunning,
          `the svc of ${place.home} (process ${pid}) does not answer: ${error.message}`,
          `look at its log; ${commandLine('stop')} ends it`,
          { cause: error },
        )
  }
  if (!(error instanceof DaemonRefusal)) return error
  switch (error.status) {
    case 401:
      return new Failure(
        exits.refused,
        `${client.url} asks for a key: ${error.message}`,
        `set SVC_API_KEY, or api_key in ${place.home}/config.toml`,
        { cause: error },
      )
    case 403:
      return new Failure(exits.refused, error.message, undefined, { cause: error })
    case 404:
      return new Failure(exits.notFound, error.message, undefined, { cause: error })
    case 429:
      return new Failure(exits.failed, error.message, `wait ${error.retryAfterSecs ?? 60} seconds and try again`, {
        cause: error,
      })
    default:
      return new Failure(
        exits.failed,
        error.message,
        error.status >= 500 ? 'the log of the daemon says more' : undefined,
        { cause: error },
      )
  }
}

export const AgentItem = v.object({
  id: v.string(),
  name: v.string(),
  state: v.string(),
  created_at: v.optional(v.string(), ''),
  model_provider: v.optional(v.string(), ''),
  model_name: v.optional(v.string(), ''),
})
export type AgentItem = v.InferOutput<typeof AgentItem>

/** An agent by id or name. Throws a `Failure` that names those there are. */
export async function requireAgent(client: DaemonClient, wanted: string | undefined): Promise<AgentItem> {
  const agents = await client.call('GET', '/api/agents', v.array(AgentItem))
  const found =
    wanted === undefined
      ? (agents.find((agent) => agent.name === 'assistant') ?? agents[0])
      : (agents.find((agent) => agent.id === wanted) ?? agents.find((agent) => agent.name === wanted))
  if (found) return found
  if (agents.length === 0)
    throw new Failure(
      exits.notFound,
      'there are no agents',
      `spawn one with ${commandLine('agent spawn <manifest.toml>')}`,
    )
  throw new Failure(
    exits.notFound,
    `there is no agent "${wanted ?? ''}"${suggest(
      findNearest(
        wanted ?? '',
        agents.map((agent) => agent.name),
      ),
    )}`,
    `there are: ${agents.map((agent) => agent.name).join(', ')}`,
  )
}
