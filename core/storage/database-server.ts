export interface PoolOptions {
  /** Connections at most. They are opened when they are needed, and closed after a minute without use. */
  readonly max: number
  /** As `application_name`, which the server's views show. */
  readonly name: string
}

/** Connections of their own to the database server. Whoever opened it disposes it. */
export interface ServerPool extends AsyncDisposable {
  /**
   * SQL in the text of the server, with `$1` for the first value; several statements where there are no values. Rejects
   * with the error of the server, and with `ServerAway` when it does not answer.
   */
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: unknown[] }>
}

/** What a package needs that brings its own SQL, such as a queue. */
export interface DatabaseServer {
  /** `undefined` where there is no server, as on SQLite. */
  readonly openPool: ((options: PoolOptions) => ServerPool) | undefined
}
