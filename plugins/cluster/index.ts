import { hostname } from 'node:os'
import { Broadcast, Configuration, Daemon, DatabaseSnapshots, homeId } from 'svc/internal'
import { commandLine, definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { ClusterConfig } from './config.ts'
import { Cluster, DrainingChanged, MemberEnded, MemberProblemsListed, OwnedCounted } from './contract.ts'
import type { Member } from './contract.ts'
import { OnlyDaemon } from './members.ts'
import { migrations } from './migrations.ts'
import { clusterRoutes } from './routes.ts'
import type { EffectiveState } from './schema.ts'

export default definePlugin({
  name: 'cluster',
  version: '1.0.0',
  config: ClusterConfig,
  requires: {
    audit: Audit,
    broadcast: Broadcast,
    configuration: Configuration,
    daemon: Daemon,
    snapshots: DatabaseSnapshots,
  },
  provides: { cluster: Cluster },
  hooks: [MemberEnded, DrainingChanged, OwnedCounted, MemberProblemsListed],
  migrations,
  offline: {
    join: async (deps, options) => (await import('./check-join.ts')).checkJoin(deps, options),
    alive: async (deps) => (await import('./alive-offline.ts')).listAlive(deps),
  },
  pages: [
    {
      path: 'cluster',
      title: 'Cluster',
      group: 'Operations',
      file: 'pages/cluster.html',
      assets: ['cluster.js', 'cluster.css'],
    },
  ],
  async setup(ctx) {
    const { config, db, hooks, log, own, routes, run, services } = ctx
    const { broadcast, daemon } = services
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
    const onState = (state: EffectiveState): void => {
      run(() => hooks.emit(DrainingChanged, { isDraining: state !== 'active' })).catch((error: unknown) =>
        log.warn('not everything was told whether this daemon drains', error),
      )
      const undrain = commandLine(`cluster undrain ${self.name}`)
      const warning = `this daemon is drained and takes nothing more over; ${undrain} gives it work again`
      daemon.setWarnings('cluster drain', state === 'draining' ? [warning] : [])
      if (state === 'stopping') daemon.shutdown('it was drained to be stopped', config.stop_wait_secs * 1000)
    }
    own('drain warning', () => daemon.setWarnings('cluster drain', []))
    const rest = {
      owned: () => hooks.apply(OwnedCounted, []),
      problems: () => hooks.apply(MemberProblemsListed, []),
    }
    // Nobody else can be on a database that is a file of this machine.
    if (db.dialect === 'sqlite') {
      const members = new OnlyDaemon(self, daemon, onState)
      routes.add(...clusterRoutes({ ...rest, members, isShared: false, differences: async () => [] }))
      return { cluster: members }
    }
    const { joinOthers } = await import('./joining.ts')
    const { members, differences } = await joinOthers({ ...ctx, ...services, self, onState })
    routes.add(...clusterRoutes({ ...rest, members, isShared: true, differences }))
    return { cluster: members }
  },
})
