import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startFakeProvider } from '../support/fake-provider.ts'
import { startPostgres } from '../support/postgres-server.ts'
import type { TestDatabase } from '../support/postgres-server.ts'
import { startBalancer } from './cluster/balancer.ts'
import { AutomationLoad } from './cluster/automation.ts'
import { BudgetLoad, PRICE_PER_MILLION, USAGE } from './cluster/budget.ts'
import { ChannelLoad } from './cluster/channels.ts'
import { ChatLoad } from './cluster/chat.ts'
import { Client, isReady, until } from './cluster/client.ts'
import { ClusterDaemon, loopbackAddresses } from './cluster/daemons.ts'
import { DatabaseLink } from './cluster/database-link.ts'
import { incidents } from './cluster/incidents.ts'
import type { Scene } from './cluster/incidents.ts'
import type { Load } from './cluster/load.ts'
import { Marks } from './cluster/marks.ts'
import { teach } from './cluster/model.ts'
import { RecurringLoad } from './cluster/recurring.ts'
import { Receiver } from './cluster/receiver.ts'
import { generator } from './crash.ts'
import type { FaultOptions, FaultReport } from './report.ts'

const DAEMONS = 3
/** In the short form, which starts them from source. */
const DAEMONS_IN_SHORT = 2
/** That of the short form: nobody waits for a lease, and it leaves everything open whose outcome is not known. */
const INCIDENT_IN_SHORT = 'connectionsCut'
/** The smallest that is possible. */
const LEASE_SECS = 5
const HEALS_MS = 60_000

/**
 * Three daemons (two in the short form) on one PostgreSQL behind HAProxy. In each round something happens to them under load; then everything
 * heals, and what the clients were told is compared with what is there.
 */
export async function cluster({ rounds, seed, built }: FaultOptions): Promise<FaultReport> {
  const began = performance.now()
  const random = generator(seed)
  const problems: string[] = []
  const done: string[] = []
  await using cleanup = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'svc-cluster-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const server = cleanup.use(await startPostgres())
  const database = await server.createDatabase()
  const fake = cleanup.use(await startFakeProvider())
  const receiver = cleanup.use(await Receiver.start(generator(seed + 1)))
  const marks = new Marks(join(folder, 'marks.log'))
  const address = loopbackAddresses()
  const count = built ? DAEMONS : DAEMONS_IN_SHORT
  const balancerAddress = address(count + 1)
  const client = new Client(`http://${balancerAddress}`, problems)
  const channels = cleanup.use(await ChannelLoad.start(client, marks, generator(seed + 2)))
  const budget = new BudgetLoad(client)
  const loads: readonly Load[] = [
    new ChatLoad(client, marks),
    new AutomationLoad(client, receiver, marks),
    new RecurringLoad(client, receiver),
    channels,
    budget,
  ]
  teach(fake, USAGE, (label) => budget.spend(label))
  const daemons = await Promise.all(
    Array.from({ length: count }, async (_, index) =>
      ClusterDaemon.prepare({
        name: `daemon-${index + 1}`,
        home: join(folder, `home-${index + 1}`),
        address: address(index + 1),
        link: cleanup.use(await DatabaseLink.open(database.host)),
        database,
        config: toConfig({ provider: fake.url, marks: marks.file, balancer: balancerAddress }) + channels.config,
        built,
      }),
    ),
  )
  for (const daemon of daemons) cleanup.use(daemon)
  await Promise.all(daemons.map((daemon) => daemon.start()))
  cleanup.use(
    await startBalancer({
      folder,
      address: balancerAddress,
      daemons: daemons.map(({ url }) => new URL(url).host),
    }),
  )
  const scene: Scene = { daemons, server, database, leaseMs: LEASE_SECS * 1_000, random, problems }
  for (let round = 0; round < rounds && problems.length === 0; round++) {
    const names = built ? choose(round, random) : [INCIDENT_IN_SHORT]
    done.push(names.join(' and '))
    if (built) console.error(`round ${round}: ${names.join(' and ')}`)
    try {
      await play(round, names)
    } catch (error) {
      problems.push(String(error))
    }
    for (const problem of problems) console.error(problem)
  }
  const figures = Object.assign({}, ...loads.map((load) => load.figures)) as Record<string, number>
  return {
    rounds: done.length,
    seed,
    seconds: Math.round((performance.now() - began) / 1000),
    ...figures,
    ...(problems.length > 0 && { logs: await keepLogs(daemons, database) }),
    problems: problems.map(
      (problem) => `seed ${seed}, round ${done.length - 1} (${done.at(-1)}): ${problem}${reasonOf(problem, daemons)}`,
    ),
  }

  async function play(round: number, names: readonly string[]): Promise<void> {
    for (const load of loads) await load.prepare(round)
    const stop = new AbortController()
    const working = Promise.all(loads.map((load) => load.run(round, stop.signal)))
    // Reported below, also when something else fails first.
    working.catch(() => undefined)
    try {
      await delay(200 + random() * 800)
      await Promise.all(
        names.map((name, index) => incidents[name]?.(scene, daemons[(round + 2 * index) % count] as ClusterDaemon)),
      )
      problems.push(...(await healed(daemons)))
    } finally {
      stop.abort()
    }
    await working
    for (const daemon of daemons) await daemon.shiftClock(0)
    for (const load of loads) problems.push(...(await load.check(round)))
    for (const { url, name } of daemons) {
      const trail = await new Client(url, problems).get('/api/audit/verify')
      if (trail.status !== 'valid') problems.push(`the trail as ${name} reads it: ${JSON.stringify(trail)}`)
    }
  }
}

const REASON_LINES = 15
/** What the daemons printed of a request that a problem names. */
function reasonOf(problem: string, daemons: readonly ClusterDaemon[]): string {
  const id = /"request_id":"([^"]+)"/.exec(problem)?.[1]
  if (id === undefined) return ''
  return daemons
    .flatMap(({ name, output }) => {
      const lines = output.split('\n')
      const at = lines.findIndex((line) => line.includes(id))
      return at === -1 ? [] : [`\n${name}: ${lines.slice(at, at + REASON_LINES).join('\n')}`]
    })
    .join('')
}

/** What a message that was lost may still be seen in. */
const TABLES = [
  'channels_inbox',
  'channels_outbox',
  'channels_owner',
  'journal_turn',
  'chat_session_owner',
  'chat_relayed_turn',
  'cluster_member',
  'sessions_message',
  'schedules_slot',
  'triggers_firing',
  'workflows_run',
  'core_idempotency',
  'queue_pgboss.job',
]
/** What the daemons printed and the database holds, in a folder that stays. */
async function keepLogs(daemons: readonly ClusterDaemon[], database: TestDatabase): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-cluster-logs-'))
  for (const { name, output } of daemons) await writeFile(join(folder, `${name}.log`), output)
  for (const table of TABLES)
    await writeFile(
      join(folder, `${table}.jsonl`),
      // What is not there is no reason to say nothing of the others.
      await database.query(`SELECT to_jsonb(t) - 'traces' FROM ${table} t`).catch(String),
    )
  return folder
}

/** One thing each, in turn; later rounds have another one beside it. */
function choose(round: number, random: () => number): readonly string[] {
  // Some only, to look for the cause of a failure: SVC_INCIDENTS=paused,killed.
  const names = process.env['SVC_INCIDENTS']?.split(',') ?? Object.keys(incidents)
  const first = names[round % names.length] ?? ''
  const second = names[Math.floor(random() * names.length)] ?? ''
  const isSame = second === first || [first, second].every((name) => name.startsWith('database'))
  return round < names.length || isSame ? [first] : [first, second]
}

/** Every daemon takes requests again. */
async function healed(daemons: readonly ClusterDaemon[]): Promise<readonly string[]> {
  const states = await Promise.all(daemons.map((daemon) => until(() => isReady(new URL(daemon.url).host), HEALS_MS)))
  return daemons.flatMap(({ name }, index) =>
    states[index] ? [] : [`${name} is not ready after ${HEALS_MS / 1000} s`],
  )
}

function toConfig(given: { readonly provider: string; readonly marks: string; readonly balancer: string }): string {
  return `
default_provider = "openai"
default_model = "fake-1"
[providers.openai]
base_url = "${given.provider}"
api_key = "test-key"
[providers.openai.prices]
fake-2 = { input = ${PRICE_PER_MILLION}, output = ${PRICE_PER_MILLION} }
[rate_limit]
tokens_per_minute = 1000000000
[http]
allowed_hosts = ["${given.balancer.split(':')[0]}"]
trusted_proxies = ["127.0.0.1/32"]
[plugins.cluster]
lease_secs = ${LEASE_SECS}
notice_secs = 1
[plugins.queue]
lease_secs = 10
retry_min_ms = 100
retry_max_ms = 1000
[plugins.result-delivery]
retry_max_secs = 1
[plugins.webhooks]
back_off_min_ms = 100
back_off_max_ms = 1000
max_attempts = 100
[outbound]
allow = ["127.0.0.1"]
[plugins.approvals]
policy = "never"
[plugins.marker]
file = "${given.marks}"
`
}
