import { connect } from 'node:net'
import type { Address } from './listen.ts'

/** What a socket read: names of headers in lower case, a repeated header with all its values in one line. */
export interface RawAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** The address the daemon saw as its peer. */
  readonly from: string
}

const MOST_BYTES = 65_536

/** Sends bytes to the daemon's own port as any stranger could, and reads the answer until the connection ends. Rejects when there is none in time. */
export async function exchangeWith({ url }: Address, bytes: string, timeoutMs: number): Promise<RawAnswer> {
  const { hostname, port, protocol } = new URL(url)
  const target = {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
  }
  // The certificate may be one the daemon made for itself; nothing secret is sent.
  const socket =
    protocol === 'https:'
      ? (await import('node:tls')).connect({ ...target, rejectUnauthorized: false })
      : connect(target)
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let from = ''
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)))
    socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', () => {
      from = socket.localAddress ?? ''
      socket.write(bytes, 'latin1')
    })
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size > MOST_BYTES) socket.destroy(new Error(`the answer is longer than ${MOST_BYTES} bytes`))
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
