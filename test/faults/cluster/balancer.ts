import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const example = new URL('../../../docs/deployment/haproxy.cfg', import.meta.url)

/** HAProxy, configured as documented, before three daemons. It looks for them more often, so that rounds are short. */
export async function startBalancer(options: {
  readonly folder: string
  readonly address: string
  readonly daemons: readonly string[]
}): Promise<AsyncDisposable & { readonly url: string }> {
  const { folder, address, daemons } = options
  let text = (await readFile(example, 'utf8'))
    .replace('bind :4545', `bind ${address}`)
    .replace('hdr Host localhost:4545', `hdr Host ${address}`)
    .replace('inter 1s', 'inter 200ms')
  for (const [index, daemon] of daemons.entries()) text = text.replace(`10.0.0.1${index + 1}:4545`, daemon)
  const file = join(folder, 'haproxy.cfg')
  await writeFile(file, text)
  const balancer = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' })
  await once(balancer, 'spawn')
  return {
    url: `http://${address}`,
    async [Symbol.asyncDispose]() {
      if (balancer.exitCode !== null) return
      const ended = once(balancer, 'exit')
      balancer.kill('SIGKILL')
      await ended
    },
  }
}
