import { EventEmitter } from 'node:events'
import { UpstreamFailure } from 'svc/sdk'
import type { Connection } from 'svc/sdk'
import { readUntil, toTlsOptions } from 'svc/channels'
import type { Link } from './config.ts'

const TLS = 'urn:ietf:params:xml:ns:xmpp-tls'

/** An encrypted connection to the server. Without encryption no password is sent. */
export async function connectTo(link: Link, domain: string): Promise<Connection> {
  const { config } = link
  const { hostname: host, port, protocol } = new URL(config.base_url ?? `xmpp://${domain}`)
  const tls = { ...toTlsOptions(config), servername: domain }
  if (protocol === 'xmpps:')
    return await link.connect({ host, port: Number(port) || 5223, tls: { ...tls, alpn: ['xmpp-client'] } })
  const plain = await link.connect({ host, port: Number(port) || 5222 })
  const within = { system: 'xmpp', signal: link.signal }
  try {
    plain.write(
      `<?xml version='1.0'?><stream:stream to='${domain}' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>`,
    )
    const features = await readUntil(plain, (text) => text.includes('</stream:features>'), within)
    if (!features.includes(TLS)) throw failed(`${host} does not offer STARTTLS`)
    plain.write(`<starttls xmlns='${TLS}'/>`)
    const answer = await readUntil(plain, (text) => text.includes('>'), within)
    if (!/^\s*<proceed\b/.test(answer)) throw failed(`${host} refused STARTTLS`)
    return await link.startTls(plain, tls)
  } catch (error) {
    plain.destroy()
    throw error
  }
}

function failed(message: string): UpstreamFailure {
  return new UpstreamFailure('xmpp', message, { reason: 'network', retry: 'never' })
}

/** The connection in the form in which the library makes its own. */
export function socketClassFor(connection: Connection) {
  return class GuardedSocket extends EventEmitter {
    readonly secure = true
    connect(): void {
      connection.on('data', (data: Uint8Array) => this.emit('data', data))
      connection.once('close', () => this.emit('close'))
      connection.on('error', (error) => this.emit('error', error))
      setImmediate(() => this.emit('connect'))
    }
    write(data: string, done: (error?: Error | null) => void): void {
      connection.write(data, done)
    }
    end(): void {
      connection.end()
    }
  }
}
