import type { Client, ClientConfig } from 'pg'

/** A server that does not take a connection in this time is taken for gone. */
const CONNECT_MS = 5_000

/** What every connection of a daemon has. An address may say otherwise, such as `?application_name=`. */
export function clientConfig(url: string): ClientConfig {
  return { connectionString: url, application_name: 'svc', connectionTimeoutMillis: CONNECT_MS, keepAlive: true }
}

/** A connection for one purpose; whoever asked for it ends it. */
export async function connectPostgres(url: string): Promise<Client> {
  const { default: pg } = await import('pg')
  const client = new pg.Client(clientConfig(url))
  // Without a listener a connection that breaks while idle would end the process.
  client.on('error', () => undefined)
  try {
    await client.connect()
  } catch (error) {
    client.connection.stream.destroy()
    throw error
  }
  return client
}
