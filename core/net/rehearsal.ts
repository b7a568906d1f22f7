import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { Refusal } from '../errors/error.ts'
import { createOutbound } from './outbound.ts'
import type { OutboundSettings, Resolve } from './outbound.ts'

/** One request that was tried, and whether the way out did with it what it must. */
export interface Tried {
  readonly name: string
  readonly held: boolean
}

/**
 * Tries the way out against a listener on this machine that counts who connects: a client made by the same function as the daemon's own
 * must reach it by none of the forms of its address, and by the one that is on the allow list exactly once.
 */
export async function rehearseOutbound(signal: AbortSignal): Promise<readonly Tried[]> {
  let hits = 0
  const paths: string[] = []
  // A bare socket: a second kind of HTTP server in the process would make every answer of the first one slower from then on.
  const server = createServer((socket) => {
    hits++
    socket.on('error', () => socket.destroy()).setTimeout(2_000, () => socket.destroy())
    socket.once('data', (bytes) => {
      const path = bytes.toString('latin1').split(' ', 2)[1] ?? ''
      paths.push(path)
      const to =
        path === '/away'
          ? 'http://169.254.169.254/latest/'
          : path === '/back'
            ? `http://127.0.0.1:${port}/inner`
            : undefined
      socket.end(
        `HTTP/1.1 ${to === undefined ? '200 OK' : `302 Found\r\nLocation: ${to}`}\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached`,
      )
    })
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const tried: Tried[] = []
  try {
    const guarded = client([], () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]))
    const moving = client([], alternating(['198.41.0.4', '127.0.0.1']))
    const listed = client(['listed.test'], () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]))
    const refused = async (
      name: string,
      fetch: ReturnType<typeof client>['fetch'],
      url: string,
      most = 0,
    ): Promise<void> => {
      const before = hits
      tried.push({ name, held: (await isRefused(fetch, url, signal)) && hits - before <= most })
    }
    await refused('this machine by its address', guarded.fetch, `http://127.0.0.1:${port}/`)
    await refused('this machine as one number', guarded.fetch, `http://2130706433:${port}/`)
    await refused('this machine in IPv6', guarded.fetch, `http://[::ffff:127.0.0.1]:${port}/`)
    await refused('this machine in the old IPv6 form', guarded.fetch, `http://[::127.0.0.1]:${port}/`)
    await refused('a name that leads to this machine', guarded.fetch, `http://inside.test:${port}/`)
    await refused('a user name in the address', guarded.fetch, `http://user@inside.test:${port}/`)
    await refused('another scheme', guarded.fetch, 'file:///etc/hostname')
    await refused('a name of which one answer is this machine', moving.fetch, `http://moving.test:${port}/`)
    await refused(
      'a redirect from a listed host to a metadata service',
      listed.fetch,
      `http://listed.test:${port}/away`,
      1,
    )
    await refused('a redirect from a listed host to this machine', listed.fetch, `http://listed.test:${port}/back`, 1)
    const before = hits
    const answer = await listed.fetch(`http://listed.test:${port}/plain`, { signal })
    const text = await answer.text()
    tried.push({
      name: 'a host on the allow list is reached once',
      held: text === 'reached' && hits === before + 1 && !paths.includes('/inner'),
    })
    await Promise.all([guarded, moving, listed].map((each) => each[Symbol.asyncDispose]()))
    return tried
  } finally {
    server.close()
  }
}

const settings = (allow: readonly string[]): OutboundSettings => ({
  allow,
  headersTimeoutMs: 1000,
  idleTimeoutMs: 1000,
  maxBytes: 4096,
  maxRedirects: 3,
  connectTimeoutMs: 500,
  totalTimeoutMs: 1500,
})

function client(allow: readonly string[], resolve: Resolve): ReturnType<typeof createOutbound> {
  const fixed = settings(allow)
  return createOutbound({ settings: () => fixed, resolve })
}

/** All of the addresses at once, as a name has them that is meant to pass a check with the first and be used with the second. */
function alternating(addresses: readonly string[]): Resolve {
  return () => Promise.resolve(addresses.map((address) => ({ address, family: 4 })))
}

async function isRefused(
  fetch: ReturnType<typeof client>['fetch'],
  url: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const answer = await fetch(url, { signal })
    await answer.text()
    return false
  } catch (error) {
    return error instanceof Refusal && error.code === 'forbidden'
  }
}
