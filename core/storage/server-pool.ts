import type { ConsolaInstance } from 'consola'

export interface PoolOptions {
  /** Connections at most. They are opened when they are needed, and closed after a minute without use. */
  readonly max: number
  /** As `application_name`, which the server's views show. */
  readonly name: string
}

/** Connections to the database server of their own. Whoever opened it disposes it. */
export interface ServerPool extends AsyncDisposable {
  /**
   * SQL in the text of the server, with `$1` for the first value; several statements where there are no values. Rejects
   * with the error of the server.
   */
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: any[] }>
}

/** What a package needs that brings its own SQL, such as a queue. */
export interface DatabaseServer {
  /** `undefined` where there is no server, as on SQLite. */
  readonly openPool: ((options: PoolOptions) => ServerPool) | undefined
}

const IDLE_MS = 60_000
const CONNECT_MS = 10_000
/** A server that was cut off without a word; maintenance of large tables takes its time. */
const QUERY_MS = 300_000

/** `url` has the password. */
export function openServerPool(url: string, { max, name }: PoolOptions, log: ConsolaInstance): ServerPool {
  const opened = import('pg').then(({ default: pg }) => {
    const pool = new pg.Pool({
      connectionString: url,
      max,
      application_name: name,
      idleTimeoutMillis: IDLE_MS,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: QUERY_MS,
      keepAlive: true,
    })
    // Without a listener a connection that breaks while idle would end the process.
    pool.on('error', (error) => log.warn(`a connection of "${name}" to the database server broke: ${error.message}`))
    return pool
  })
  return {
    async query(text, values) {
      return (await opened).query(text, values === undefined ? undefined : [...values])
    },
    async [Symbol.asyncDispose]() {
      await (await opened).end()
    },
  }
}
