import { connect } from 'node:net'
import type { Address } from './listen.ts'

/** The daemon's own port, as any client reaches it. */
export interface OwnPort {
  /** Host and port for a `Host` header; `undefined` while no port is open. */
  host(): string | undefined
  /** Sends bytes and reads the answer. `undefined` while no port is open; rejects when no answer arrives in time. */
  exchange(bytes: string): Promise<RawAnswer | undefined>
  /** The limiter's state for a client at this address. It grows with every charge; `undefined` when there was none. */
  charged(address: string): number | undefined
}

/** Header names are in lower case; a repeated header has all its values in one line. */
export interface RawAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** The address the daemon saw as its peer. */
  readonly from: string
}

const MAX_BYTES = 65_536
const TIMEOUT_MS = 1_500

/** Sends bytes and reads the answer until the connection ends. Rejects when there is none in time. */
export async function exchangeWith({ url }: Address, bytes: string): Promise<RawAnswer> {
  const { hostname, port, protocol } = new URL(url)
  const target = {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
  }
  // The certificate may be self-signed; nothing secret is sent.
  const socket =
    protocol === 'https:'
      ? (await import('node:tls')).connect({ ...target, rejectUnauthorized: false })
      : connect(target)
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let from = ''
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)))
    socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', () => {
      from = socket.localAddress ?? ''
      socket.write(bytes, 'latin1')
    })
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > MAX_BYTES) socket.destroy(new Error(`the answer is longer than ${MAX_BYTES} bytes`))
    })
    socket.once('error', reject)
    socket.once('close', () => {
      const answer = readAnswer(Buffer.concat(chunks).toString('latin1'), from)
      if (answer) resolve(answer)
      else reject(new Error('the connection ended without an answer'))
    })
  })
}

function readAnswer(text: string, from: string): RawAnswer | undefined {
  const end = text.indexOf('\r\n\r\n')
  const [first = '', ...lines] = text.slice(0, end < 0 ? 0 : end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1])
  if (!Number.isInteger(status)) return undefined
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers.set(name, headers.has(name) ? `${headers.get(name)}, ${value}` : value)
  }
  return { status, headers, body: text.slice(end + 4), from }
}
