import { connect as openSocket } from 'node:net'
import type { Socket } from 'node:net'

/** A socket to one of these addresses, and no second look at the name. Throws what the system says. */
export async function connectTo(
  host: string,
  port: number,
  addresses: readonly { readonly address: string; readonly family: number }[],
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<Socket> {
  const socket = openSocket({
    host,
    port,
    lookup: (_, { all }, done) => {
      const [first] = addresses
      if (all) done(null, [...addresses])
      else done(null, first?.address ?? '', first?.family)
    },
    signal,
  })
  return await new Promise((resolve, reject) => {
    const patience = setTimeout(
      () => socket.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' })),
      timeoutMs,
    )
    const fail = (error: Error): void => {
      clearTimeout(patience)
      reject(error)
    }
    socket.once('error', fail)
    socket.once('connect', () => {
      clearTimeout(patience)
      socket.off('error', fail)
      resolve(socket)
    })
  })
}
