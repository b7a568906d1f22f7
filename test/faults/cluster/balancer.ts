import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { isReady } from './client.ts'

const example = new URL('../../../docs/deployment/haproxy.cfg', import.meta.url)
const LOOK_MS = 200

export interface BalancerOptions {
  readonly folder: string
  /** Of the balancer and of up to three daemons: `host:port`. */
  readonly address: string
  readonly daemons: readonly string[]
}

/** HAProxy, or a proxy of our own where that is missing. */
export async function startBalancer(options: BalancerOptions): Promise<AsyncDisposable> {
  return spawnSync('haproxy', ['-v']).status === 0 ? startHaproxy(options) : startProxy(options)
}

/** As documented. It looks for the daemons more often, so that rounds are short. */
async function startHaproxy({ folder, address, daemons }: BalancerOptions): Promise<AsyncDisposable> {
  let text = (await readFile(example, 'utf8'))
    .replace('bind :4545', `bind ${address}`)
    .replace('hdr Host localhost', `hdr Host ${address}`)
    .replace('inter 1s', `inter ${LOOK_MS}ms`)
  for (const [index, daemon] of daemons.entries()) text = text.replace(`10.0.0.1${index + 1}:4545`, daemon)
  text = text.replaceAll(/^ *server svc-\d+ 10\..*$/gm, '')
  const file = join(folder, 'haproxy.cfg')
  await writeFile(file, text)
  const balancer = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' })
  await once(balancer, 'spawn')
  return {
    async [Symbol.asyncDispose]() {
      if (balancer.exitCode !== null) return
      const ended = once(balancer, 'exit')
      balancer.kill('SIGKILL')
      await ended
    },
  }
}

/** Gives each connection to a daemon that is ready, in turn. */
async function startProxy({ address, daemons }: BalancerOptions): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>()
  let ready = daemons
  let next = 0
  const look = setInterval(() => {
    Promise.all(daemons.map(isReady)).then(
      (states) => (ready = daemons.filter((_, index) => states[index])),
      () => undefined,
    )
  }, LOOK_MS)
  const server = createServer((client) => {
    const target = new URL(`http://${ready[next++ % ready.length] ?? daemons[0]}`)
    const daemon = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [client, daemon],
      [daemon, client],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  const { hostname, port } = new URL(`http://${address}`)
  server.listen(Number(port), hostname)
  await once(server, 'listening')
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(look)
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
