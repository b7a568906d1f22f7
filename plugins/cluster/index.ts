import * as v from 'valibot'
import { hostname } from 'node:os'
import { BEATS, Broadcast, Daemon, DaemonListening, homeId } from 'svc/internal'
import { definePlugin, fields, fileOnly } from 'svc/sdk'
import type { Metrics } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { Cluster, MemberEnded } from './contract.ts'
import type { Member } from './contract.ts'
import type { Membership } from './membership.ts'
import { migrations } from './migrations.ts'

/** The members changed: what is known of them is read anew. */
const TOPIC = 'cluster.members'

export default definePlugin({
  name: 'cluster',
  version: '1.0.0',
  config: fileOnly(
    'says when the other daemons on a database take over what this one does',
    v.object({
      lease_secs: fields.integer(
        'Seconds after which the other daemons on the database take over what this one did, when it has died.',
        15,
        5,
        3600,
        { restart: true },
      ),
      name: fields.text('What this daemon is called where several are listed; the name of its machine by default.', {
        restart: true,
      }),
      address: fields.text(
        'Where this daemon is reached by its operator, such as 10.0.0.5:4200; where it listens by default.',
        { restart: true },
      ),
    }),
  ),
  requires: { audit: Audit, broadcast: Broadcast, daemon: Daemon },
  provides: { cluster: Cluster },
  hooks: [MemberEnded],
  migrations,
  async setup(ctx) {
    const { config, db, hooks, jobs, leaving, log, metrics, own, run, services } = ctx
    const { audit, broadcast, daemon } = services
    const self: Member = {
      id: broadcast.daemonId,
      homeId: homeId(daemon.config()),
      name: config.name ?? hostname(),
      hostName: hostname(),
      address: config.address,
      version: daemon.build.version,
      startedAt: daemon.startedAt,
      state: 'active',
    }
    // Nobody else can be on a database that is a file of this machine.
    if (db.dialect === 'sqlite') return { cluster: onlyDaemon(self, daemon, leaving) }

    const [{ Membership }, { MemberStore }] = await Promise.all([import('./membership.ts'), import('./store.ts')])
    const background = (what: string, work: () => Promise<unknown>): void => {
      run(work).catch((error: unknown) => log.warn(what, error))
    }
    const membership = new Membership({
      store: new MemberStore(db),
      audit,
      tellChange: () => broadcast.tell(TOPIC, {}),
      self,
      leaseMs: config.lease_secs * 1000,
      log,
      onEnded: ({ id, homeId }) =>
        background('what a daemon left behind was not taken over', () => hooks.emit(MemberEnded, { id, homeId })),
      onDead: (twin) => {
        if (!twin) return daemon.restart('the other daemons on the database have declared this one dead')
        log.error(
          `the daemon at ${twin.address ?? 'an unknown address'} has the same host name (${twin.hostName}) and the ` +
            'same home folder as this one, so they take each other for one: give one of them another host name',
        )
        daemon.shutdown('another daemon on the database has the same host name and home folder')
      },
    })
    const reread = (): void => background('the daemons on the database were not read', () => membership.refresh())
    const subscription = broadcast.on(TOPIC, { heard: reread, missed: reread })
    own('messages', () => subscription[Symbol.dispose]())
    own('membership', () =>
      membership.leave().catch((error: unknown) => log.warn('the other daemons were not told of the end', error)),
    )
    await membership.join()
    leaving.addEventListener('abort', () => {
      if (daemon.stopping !== undefined)
        background('the other daemons were not told of the end', () => membership.setState('draining'))
    })
    jobs.every('beat', (config.lease_secs * 1000) / BEATS, () => membership.beat())
    hooks.on(DaemonListening, ({ url }) => membership.setAddress(config.address ?? new URL(url).host))
    measure(metrics, membership)
    return { cluster: membership }
  },
})

function onlyDaemon(self: Member, daemon: Daemon, leaving: AbortSignal): Cluster {
  return {
    self: self.id,
    get isDraining() {
      return leaving.aborted
    },
    members: async () => [{ ...self, address: self.address ?? daemon.ownPort.host() }],
    isAlive: (id) => id === self.id,
    fence: () => [],
    unlessAlive: () => [],
  }
}

function measure(metrics: Metrics, membership: Membership): void {
  metrics.observed('svc_cluster_members', 'Daemons on the database, by state, as known to this one.', () =>
    (['active', 'draining'] as const).map((state) => ({
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
