import { connect as openSocket, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { failureOf } from './outbound-exchange.ts'
import { portOf } from './policy.ts'

type Addresses = readonly { readonly address: string; readonly family: number }[]
export interface ConnectToOptions {
  /** The addresses of the name, checked. */
  readonly resolve: () => Promise<Addresses>
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** A socket to an address of the host, which is not looked up a second time. */
export async function connectTo(url: URL, host: string, options: ConnectToOptions): Promise<Socket> {
  try {
    const addresses = isIP(host) === 0 ? await options.resolve() : [{ address: host, family: isIP(host) }]
    return await open(host, portOf(url), addresses, options)
  } catch (error) {
    throw failureOf(url, error)
  }
}

async function open(
  host: string,
  port: number,
  addresses: Addresses,
  { signal, timeoutMs }: ConnectToOptions,
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
