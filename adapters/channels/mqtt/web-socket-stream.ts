import { Duplex } from 'node:stream'
import type { WebSocketConnection } from 'svc/sdk'

/** A WebSocket as the stream of bytes that it carries. */
export function toStream(socket: WebSocketConnection): Duplex {
  const stream = new Duplex({
    read() {
      socket.resume()
    },
    write(chunk: Uint8Array, _encoding, done) {
      void settle(socket.send(new Uint8Array(chunk)), done)
    },
    final(done) {
      void settle(socket.close(), done)
    },
    destroy(error, done) {
      socket.terminate()
      done(error)
    },
  })
  socket.on('message', (data) => {
    if (!stream.push(typeof data === 'string' ? Buffer.from(data) : data)) socket.pause()
  })
  socket.on('close', () => {
    stream.push(null)
    stream.destroy()
  })
  return stream
}

async function settle(work: Promise<unknown>, done: (error?: Error) => void): Promise<void> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => (reason instanceof Error ? reason : new Error(String(reason))),
  )
  done(error)
}
