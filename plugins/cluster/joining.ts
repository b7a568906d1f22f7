import { BEATS, DaemonListening, DaemonStopping, ListeningStarting, PluginChanged } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Broadcast, Configuration, Daemon, DatabaseSnapshots, OwnAddress } from 'svc/internal'
import type { Hooks, Jobs, Logger, Metrics, PluginContext, PluginDatabase } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { ClusterConfig } from './config.ts'
import { MemberEnded } from './contract.ts'
import type { Member } from './contract.ts'
import { describeDifferences, describeNamesakes, describeNotice, describeUnknown, Differences } from './differences.ts'
import type { Difference } from './differences.ts'
import type { Members } from './members.ts'
import { Membership } from './membership.ts'
import type { EffectiveState, MemberRow } from './schema.ts'
import { MemberStore } from './store.ts'
import { refuseTwin, rememberRun } from './twin.ts'

/** The members changed, or what they say of themselves. */
const TOPIC = 'cluster.members'
const COMPARE_MS = 60_000

export interface SharedDeps extends Pick<PluginContext<ClusterConfig, {}, {}>, 'own' | 'run' | 'leaving' | 'config'> {
  readonly db: PluginDatabase
  readonly hooks: Hooks
  readonly jobs: Jobs
  readonly log: Logger
  readonly metrics: Metrics
  readonly audit: Audit
  readonly broadcast: Broadcast
  readonly configuration: Configuration
  readonly daemon: Daemon
  readonly snapshots: DatabaseSnapshots
  /** As it joins. */
  readonly self: Member
  onState(state: EffectiveState): void
}

/** Joins the daemons on a PostgreSQL database. Whatever is left is left when the plugin unloads. */
export async function joinOthers(
  deps: SharedDeps,
): Promise<{ readonly members: Members; readonly differences: () => Promise<readonly Difference[]> }> {
  const { config, broadcast, hooks, jobs, log, own, run } = deps
  const store = new MemberStore(deps.db, log)
  const background = (what: string, work: () => Promise<unknown>): void => {
    run(work).catch((error: unknown) => log.warn(what, error))
  }
  const membership = new Membership({
    ...deps,
    store,
    tellChange: () => broadcast.tell(TOPIC, {}),
    leaseMs: config.lease_secs * 1000,
    now: () => performance.now(),
    onRead: (rows) =>
      deps.daemon.setOwnAddresses('cluster', rows.filter(({ id }) => id !== deps.self.id).flatMap(addressesOf)),
    onEnded: ({ id, homeId }) => {
      // It may have been the one that had what this one lacks.
      comparison.isDue = true
      background('what a daemon left behind was not taken over', () => hooks.emit(MemberEnded, { id, homeId }))
    },
    onDead: (twin) => endDead(deps, twin),
  })
  const comparison = await compareConfiguration(deps, store, membership)
  const heard = (): void => {
    comparison.isDue = true
    background('the daemons on the database were not read', () => membership.refresh())
  }
  const subscription = broadcast.on(TOPIC, { heard, missed: heard })
  own('messages', () => subscription[Symbol.dispose]())
  own('membership', () =>
    membership.leave().catch((error: unknown) => log.warn('the other daemons were not told of the end', error)),
  )
  const { homeDir } = deps.daemon.config()
  await refuseTwin({ store, self: deps.self, homeDir, leaving: deps.leaving })
  await membership.join()
  await rememberRun(homeDir, deps.self.id)
  own('addresses of the others', () => deps.daemon.setOwnAddresses('cluster', []))
  own('who is alive', () => deps.daemon.setLiveness(undefined))
  deps.daemon.setLiveness(membership)
  jobs.every('beat', (config.lease_secs * 1000) / BEATS, async () => {
    await membership.beat()
    await comparison.runIfDue()
  })
  // Whether it lacks something is known before it takes anything over.
  hooks.on(ListeningStarting, async () => {
    await comparison.run().catch((error: unknown) => log.warn('this daemon is not compared with the others yet', error))
  })
  hooks.on(DaemonListening, async ({ url }) => {
    const { host } = new URL(url)
    await membership.setAddress(config.address ?? host, host)
  })
  hooks.on(DaemonStopping, () => announceEnd(deps, membership))
  measure(deps.metrics, membership)
  return { members: membership, differences: comparison.find }
}

/** Nothing goes out to the others: without a key they would take an agent that calls them for the operator. */
function addressesOf({ address, listens }: MemberRow): readonly OwnAddress[] {
  return [address, listens].flatMap((text) => {
    const url = text === null ? null : URL.parse(text.includes('://') ? text : `http://${text}`)
    if (!url) return []
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
    return { host: url.hostname, port, what: 'another daemon on the same database listens there' }
  })
}

/** Lets the others and a load balancer know, and gives them time to look elsewhere. */
async function announceEnd({ config, leaving, log, self }: SharedDeps, membership: Membership): Promise<void> {
  if (!membership.isAlive(self.id)) return
  try {
    if (!membership.isDraining) await membership.setState(self.id, 'draining')
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    log.warn('the other daemons were not told that this one stops', error)
  }
  if (membership.known.length === 1) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, config.notice_secs * 1000)
  // The daemon does not wait for this longer than `plugins.drain_ms`.
  leaving.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
}

function endDead({ daemon, log }: SharedDeps, twin: Member | undefined): void {
  if (!twin) return daemon.restart('the other daemons on the database have declared this one dead')
  log.error(
    `the daemon at ${twin.address ?? 'an unknown address'} has the same host name (${twin.hostName}) and the ` +
      'same home folder as this one, so they take each other for one: give one of them another host name',
  )
  daemon.shutdown('another daemon on the database has the same host name and home folder')
}

/** Warns of what differs from the other daemons: after a change here or there, and once in a minute. */
async function compareConfiguration(deps: SharedDeps, store: MemberStore, members: Membership) {
  const { broadcast, config, configuration, daemon, hooks, jobs, log, own, self, snapshots } = deps
  const secret = await snapshots.deriveKey('cluster-configuration')
  const differences = new Differences({
    store,
    self: self.id,
    configDigests: async () => (secret === undefined ? new Map() : await configuration.digests(secret)),
    plugins: () => daemon.plugins(),
    tellChange: () => broadcast.tell(TOPIC, {}),
  })
  let shown = ''
  let sources = configuration.sources()
  const comparison = {
    isDue: false,
    find: async () => differences.find(await members.members()),
    async run(): Promise<void> {
      comparison.isDue = false
      await differences.write()
      const known = await members.members()
      const warnings = [
        ...describeUnknown(known),
        ...describeNamesakes(self, known),
        ...describeNotice(config.notice_secs, Number(configuration.shown('plugins.drain_ms'))),
        ...describeDifferences(await differences.find(known)),
      ]
      daemon.setWarnings('cluster', warnings)
      const lacks = await differences.lacking(known)
      const problem = `${lacks.join(', ')}: loaded in other daemons on the database and not here; the log says why`
      daemon.setUnready('plugins', lacks.length === 0 ? undefined : problem)
      await members.setLacks(lacks)
      if (warnings.join() !== shown) for (const warning of warnings) log.warn(warning)
      shown = warnings.join()
    },
    async runIfDue(): Promise<void> {
      // It is another one once the configuration was read again.
      if (configuration.sources() !== sources) comparison.isDue = true
      sources = configuration.sources()
      if (comparison.isDue && daemon.isListening) await comparison.run()
    },
  }
  own('warnings', () => {
    daemon.setWarnings('cluster', [])
    daemon.setUnready('plugins', undefined)
  })
  jobs.every('configuration', COMPARE_MS, async () => void (comparison.isDue = true))
  hooks.on(PluginChanged, () => void (comparison.isDue = true))
  return comparison
}

function measure(metrics: Metrics, membership: Membership): void {
  metrics.observed('svc_cluster_members', 'Daemons on the database, by state, as known to this one.', () =>
    (['active', 'draining', 'impaired', 'unknown'] as const).map((state) => ({
      value: membership.known.filter((member) => member.state === state).length,
      labels: { state },
    })),
  )
  metrics.observed(
    'svc_cluster_declared_dead',
    'Other daemons that this one has declared dead since its start.',
    () => [{ value: membership.declaredDead }],
  )
}
