import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startFakeProvider } from '../support/fake-provider.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { startBalancer } from './cluster/balancer.ts'
import { ChatLoad } from './cluster/chat.ts'
import { Client } from './cluster/client.ts'
import { ClusterDaemon, loopbackAddresses } from './cluster/daemons.ts'
import { generator } from './crash.ts'
import type { FaultOptions, FaultReport } from './report.ts'

const DAEMONS = 3
/** The smallest that is possible. */
const LEASE_SECS = 5

/**
 * Three daemons on one PostgreSQL behind HAProxy. In each round something happens to them under load; then everything
 * heals, and what the clients were told is compared with what is there.
 */
export async function cluster({ rounds, seed, built }: FaultOptions): Promise<FaultReport> {
  const random = generator(seed)
  const problems: string[] = []
  const done: string[] = []
  await using cleanup = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'svc-cluster-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const server = cleanup.use(await startPostgres())
  const database = await server.createDatabase()
  const fake = cleanup.use(await startFakeProvider())
  const marks = join(folder, 'marks.log')
  const address = loopbackAddresses()
  const balancerAddress = address(DAEMONS + 1)
  const daemons = await Promise.all(
    Array.from({ length: DAEMONS }, (_, index) =>
      ClusterDaemon.prepare({
        name: `daemon-${index + 1}`,
        home: join(folder, `home-${index + 1}`),
        address: address(index + 1),
        databaseUrl: database.url,
        config: toConfig({ provider: fake.url, marks, balancer: balancerAddress }),
        built,
      }),
    ),
  )
  for (const daemon of daemons) cleanup.use(daemon)
  await Promise.all(daemons.map((daemon) => daemon.start()))
  const balancer = cleanup.use(
    await startBalancer({
      folder,
      address: balancerAddress,
      daemons: daemons.map(({ url }) => new URL(url).host),
    }),
  )
  const client = new Client(balancer.url, problems)
  const chat = new ChatLoad(client, fake, marks)
  const figures = { messages: 0, answered: 0 }
  for (let round = 0; round < rounds && problems.length === 0; round++) {
    await chat.prepare(round)
    const stop = new AbortController()
    const load = chat.run(round, stop.signal)
    await delay(200 + random() * 800)
    const daemon = daemons[Math.floor(random() * DAEMONS)]
    done.push(`kill ${daemon?.name}`)
    await daemon?.kill()
    await delay(random() * 1_000)
    await daemon?.start()
    stop.abort()
    await load
    for (const [name, figure] of Object.entries(chat.figures)) figures[name as keyof typeof figures] += figure
    problems.push(...(await chat.check()))
    for (const { url, name } of daemons) {
      const trail = await new Client(url, problems).get('/api/audit/verify')
      if (trail.status !== 'valid') problems.push(`the trail as ${name} reads it: ${JSON.stringify(trail)}`)
    }
  }
  return {
    rounds: done.length,
    seed,
    ...figures,
    problems: problems.map((problem) => `seed ${seed}, round ${done.length - 1} (${done.at(-1)}): ${problem}`),
  }
}

function toConfig(given: { readonly provider: string; readonly marks: string; readonly balancer: string }): string {
  return `
default_provider = "openai"
default_model = "fake-1"
[providers.openai]
base_url = "${given.provider}"
api_key = "test-key"
[rate_limit]
tokens_per_minute = 1000000000
[http]
allowed_hosts = ["${given.balancer.split(':')[0]}"]
trusted_proxies = ["127.0.0.1/32"]
[plugins.cluster]
lease_secs = ${LEASE_SECS}
notice_secs = 1
[plugins.approvals]
policy = "never"
[plugins.marker]
file = "${given.marks}"
`
}
