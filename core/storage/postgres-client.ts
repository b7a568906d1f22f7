import type { Client, ClientConfig } from 'pg'
import { serverFailure } from './server-failure.ts'

/** How a daemon uses a PostgreSQL server. */
export interface PostgresSettings {
  /** At most so many, beside the one that listens. */
  readonly connections: number
  /** The server ends a statement that takes longer. */
  readonly statementTimeoutMs: number
  /** The server ends a connection whose transaction stands still for longer, and with it the locks. */
  readonly idleTransactionMs: number
}
export const DEFAULT_SETTINGS: PostgresSettings = {
  connections: 10,
  statementTimeoutMs: 30_000,
  idleTransactionMs: 15_000,
}

/** A server that does not take a connection in this time is taken for gone. */
const CONNECT_MS = 5_000
/**
 * The server notices within 15 seconds that the machine of a daemon is gone or stands still, and ends its transactions:
 * https://www.postgresql.org/docs/15/runtime-config-connection.html#RUNTIME-CONFIG-TCP-SETTINGS
 */
const KEEPALIVE = '-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2'

/**
 * What every connection of a daemon has. An address may say otherwise, such as `?application_name=`. Without `settings`
 * the server ends no statement.
 */
export function clientConfig(url: string, settings?: PostgresSettings): ClientConfig {
  return {
    connectionString: url,
    application_name: 'svc',
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: settings?.statementTimeoutMs,
    idle_in_transaction_session_timeout: settings?.idleTransactionMs,
    keepAlive: true,
    options: KEEPALIVE,
  }
}

/** A connection for one purpose; whoever asked for it ends it. */
export async function connectPostgres(url: string, settings: PostgresSettings): Promise<Client> {
  const { default: pg } = await import('pg')
  const client = new pg.Client(clientConfig(url, settings))
  // Without a listener a connection that breaks while idle would end the process.
  client.on('error', () => undefined)
  try {
    await client.connect()
  } catch (error) {
    client.connection.stream.destroy()
    throw serverFailure(error, pg)
  }
  return client
}
