import * as v from 'valibot'
import { messageOf } from '../errors/message.ts'
import { DaemonRefusal } from '../net/daemon-client.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import { commandLine } from '../process/command-name.ts'
import { UNREADABLE } from '../storage/row-reader.ts'
import { named } from './doctor-checks.ts'
import type { NamedResult } from './doctor-checks.ts'
import { failed, passed, warned } from './plugin-cli.ts'

const Detail = v.looseObject({ database: v.string(), config_warnings: v.array(v.string()) })

export interface AskedDaemon {
  readonly results: readonly NamedResult[]
  /** For the checks of plugins; it refuses at once what the daemon refuses. */
  readonly daemon: DaemonClient
}

/** What a running daemon says of its database and of proxies in front of it. `shown`: the address of its database. */
export async function askDaemon(daemon: DaemonClient, shown: string): Promise<AskedDaemon> {
  try {
    const { database, config_warnings: warnings } = await daemon.call('GET', '/api/health/detail', Detail, {
      timeoutMs: 5000,
    })
    const ofDatabase =
      database === 'connected'
        ? passed(`${shown}, in use by the daemon`)
        : failed(`${shown}: the daemon says "${database}"`, adviceFor(shown))
    const proxies = warnings
      .filter((warning) => warning.startsWith('X-Forwarded-For '))
      .map((warning) => named('proxies', warned(warning, 'set http.trusted_proxies in the configuration file')))
    const rows = warnings
      .filter((warning) => warning.startsWith(UNREADABLE))
      .map((warning) => named('rows', warned(warning, 'correct or delete them')))
    return { results: [named('database', ofDatabase), ...proxies, ...rows], daemon }
  } catch (error) {
    // Asking on would count as more wrong keys, or wait for the database each time.
    const refusing: DaemonClient = {
      url: daemon.url,
      call: () => Promise.reject(error),
      stream: (method, path, call) => daemon.stream(method, path, call),
      exchange: (method, path, call) => daemon.exchange(method, path, call),
    }
    return { results: [explain(error, shown)], daemon: error instanceof DaemonRefusal ? refusing : daemon }
  }
}

function explain(error: unknown, shown: string): NamedResult {
  const reason = messageOf(error)
  switch (error instanceof DaemonRefusal ? error.status : 0) {
    case 401:
    case 403:
      return named(
        'key',
        failed(`the daemon refuses it: ${reason}`, 'set SVC_API_KEY, or api_key of this home, to its key'),
      )
    case 429: {
      const { retryAfterSecs = 60 } = error as DaemonRefusal
      const advice = `wait ${retryAfterSecs} seconds; after that, see which client sends wrong keys or too much`
      return named('key', failed(`the daemon answers nobody at this address for now: ${reason}`, advice))
    }
    case 503:
      return named('database', failed(`${shown}: ${reason}`, adviceFor(shown)))
    default:
      return named('daemon', failed(`it cannot be asked: ${reason}`, `${commandLine('status')} and its log say more`))
  }
}

/** For a database that the running daemon cannot use. */
function adviceFor(databaseUrl: string): string {
  return /^postgres(ql)?:/.test(databaseUrl)
    ? 'start the PostgreSQL server, and see that this machine reaches it; the daemon goes on by itself then'
    : 'is the disk full, or the file read-only? the log says more'
}
