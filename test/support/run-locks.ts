import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where a test asks for a lock of the run. */
const LOCKS = 'SVC_TEST_LOCKS'

/** Around a run of tests, in the process that starts all others: gives locks to them, in the order they are asked for. */
export default async function serveLocks(): Promise<() => void> {
  const waiting = new Map<string, Socket[]>()
  const server = createServer((socket) => {
    // A process that ends gives its lock back.
    socket.on('error', () => undefined)
    socket.once('data', (name) => {
      const queue = waiting.get(name.toString()) ?? []
      waiting.set(name.toString(), queue)
      if (queue.push(socket) === 1) socket.write('yours')
      socket.once('close', () => {
        const holds = queue[0] === socket
        queue.splice(queue.indexOf(socket), 1)
        if (holds) queue[0]?.write('yours')
      })
    })
  })
  const address = join(tmpdir(), `svc-locks-${randomUUID()}.sock`)
  await once(server.listen(address), 'listening')
  process.env[LOCKS] = address
  return () => void server.close()
}

/** Waits until no other process of the run has the lock of this name; disposing gives it back. */
export async function runLock(name: string): Promise<Disposable> {
  const address = process.env[LOCKS]
  if (address === undefined) return { [Symbol.dispose]: () => undefined }
  const socket = createConnection(address)
  socket.write(name)
  await once(socket, 'data')
  return { [Symbol.dispose]: () => void socket.destroy() }
}
