import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect, getCACertificates } from 'node:tls'
import type { ConnectionOptions } from 'node:tls'
import { omitUndefined } from '../schema/object.ts'
import type { TlsOptions } from './connection.ts'
import { failureOf } from './outbound-exchange.ts'
import { canonical } from './policy.ts'

/** Encrypts a connected socket. Rejects, and closes it, when the other side has no certificate that is trusted. */
export async function encrypt(url: URL, socket: Socket, options: TlsOptions): Promise<Socket> {
  const secure = connect({ socket, ...tlsOptionsOf(url, options) })
  const done = Promise.withResolvers<void>()
  const fail = (error: Error): void => done.reject(failureOf(url, error))
  // Like that of the socket below, this listener stays: an error without one would be uncaught.
  secure.on('error', fail)
  secure.once('secureConnect', () => done.resolve())
  secure.once('close', () =>
    fail(Object.assign(new Error('closed while the encryption was set up'), { code: 'ECONNRESET' })),
  )
  try {
    await done.promise
    return secure
  } catch (error) {
    secure.destroy()
    socket.destroy()
    throw error
  }
}

function tlsOptionsOf(
  url: URL,
  { servername, ca, alpn, rejectUnauthorized, cert, key }: TlsOptions,
): ConnectionOptions {
  const host = servername ?? canonical(url.hostname)
  return {
    host,
    rejectUnauthorized: rejectUnauthorized ?? true,
    // Names only: an address cannot be asked for, and the certificate is compared with the host then.
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca: [...getCACertificates('default'), ...(typeof ca === 'string' ? [ca] : ca)] }),
    ...omitUndefined({ cert, key, ALPNProtocols: alpn && [...alpn] }),
  }
}
