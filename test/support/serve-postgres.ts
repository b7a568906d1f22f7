import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SHARED_ADDRESS, startPostgres } from './postgres-server.ts'
import type { PostgresServer } from './postgres-server.ts'

/**
 * Around a run of tests, in the process that starts all others: tells where the PostgreSQL of the run is to whoever
 * connects, and starts it for the first of them.
 */
export default async function servePostgres(): Promise<() => Promise<void>> {
  let started: Promise<PostgresServer> | undefined
  const address = join(tmpdir(), `svc-postgres-${randomUUID()}.sock`)
  const control = createServer((socket) => {
    // A test that was stopped does not wait for the answer.
    socket.on('error', () => undefined)
    started ??= startPostgres()
    started.then(
      ({ host }) => socket.end(JSON.stringify({ host })),
      (error: unknown) => socket.end(JSON.stringify({ error: String(error) })),
    )
  }).listen(address)
  await once(control, 'listening')
  process.env[SHARED_ADDRESS] = address
  return async () => {
    control.close()
    // A start that failed has failed the tests that needed it.
    const server = await started?.catch(() => undefined)
    await server?.[Symbol.asyncDispose]()
  }
}
