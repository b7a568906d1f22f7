import type { ConsolaInstance } from 'consola'
import type { PoolOptions, ServerPool } from './database-server.ts'
import { clientConfig } from './postgres-client.ts'
import { serverFailure } from './server-failure.ts'

const IDLE_MS = 60_000
/** A server that was cut off without a word; maintenance of large tables takes its time. */
const QUERY_MS = 300_000

/** `url` has the password. */
export function openServerPool(url: string, { max, name }: PoolOptions, log: ConsolaInstance): ServerPool {
  const opened = import('pg').then(({ default: pg }) => {
    const pool = new pg.Pool({
      ...clientConfig(url),
      max,
      application_name: name,
      idleTimeoutMillis: IDLE_MS,
      query_timeout: QUERY_MS,
    })
    // Without a listener a connection that breaks while idle would end the process.
    pool.on('error', (error) => log.warn(`a connection of "${name}" to the database server broke: ${error.message}`))
    return { pg, pool }
  })
  return {
    async query(text, values) {
      const { pg, pool } = await opened
      try {
        return await pool.query(text, values === undefined ? undefined : [...values])
      } catch (error) {
        throw serverFailure(error, pg)
      }
    },
    async [Symbol.asyncDispose]() {
      await (await opened).pool.end()
    },
  }
}
