import * as v from 'valibot'
import { hostname } from 'node:os'
import { Broadcast, Daemon, homeId } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Cluster, MemberEnded } from './contract.ts'

export default definePlugin({
  name: 'cluster',
  version: '1.0.0',
  config: v.object({}),
  requires: { broadcast: Broadcast, daemon: Daemon },
  provides: { cluster: Cluster },
  hooks: [MemberEnded],
  setup({ services: { broadcast, daemon } }) {
    const self = broadcast.daemonId
    const cluster: Cluster = {
      self,
      isDraining: false,
      members: async () => [
        {
          id: self,
          homeId: homeId(daemon.config()),
          hostName: hostname(),
          address: daemon.config().listenAddr,
          version: daemon.build.version,
          startedAt: daemon.startedAt,
          state: 'active',
        },
      ],
      isAlive: (id) => id === self,
      fence: () => [],
    }
    return { cluster }
  },
})
