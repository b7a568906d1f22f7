import * as v from 'valibot'
import { Broadcast, Daemon, pluginsLoaded } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { Metrics } from 'svc/sdk'
import { AgentKilled, Agents, AgentSpawned } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Turns } from '../chat/contract.ts'
import { Cluster, MemberEnded } from '../cluster/contract.ts'
import { Screening } from '../screening/contract.ts'
import { CollectProbes } from '../security/contract.ts'
import { Network } from './config.ts'
import { PeerConnected, PeerDisconnected } from './contract.ts'
import { migrations } from './migrations.ts'
import { peerRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { peerTools } from './tools.ts'

export default definePlugin({
  name: 'peers',
  version: '1.0.0',
  config: v.object({}),
  sections: { network: v.optional(Network, {}) },
  requires: {
    agents: Agents,
    audit: Audit,
    broadcast: Broadcast,
    cluster: Cluster,
    daemon: Daemon,
    turns: Turns,
    screening: Screening,
  },
  hooks: [PeerConnected, PeerDisconnected],
  // The addresses are those of the configuration file.
  outbound: 'operator',
  migrations,
  pages: [
    {
      path: 'peers',
      title: 'Peers',
      group: 'Connections',
      file: 'pages/peers.html',
      assets: ['peers.css', 'peers.js'],
    },
  ],
  setup(ctx) {
    const { hooks, leaving, log, metrics, own, routes, run, services, tools } = ctx
    const { network: settings } = ctx.config
    const background = (work: () => Promise<void>): void => {
      run(work).catch((error: unknown) => log.error('work for the network failed', error))
    }
    const counted = countWith(metrics)
    let opened: Runtime | undefined
    const open = async (): Promise<Runtime> => {
      const { Runtime } = await import('./runtime.ts')
      return (opened = new Runtime({
        ...ctx,
        ...services,
        settings,
        background,
        counted,
        emit: async (event, peer, reason) => {
          if (event === 'connected') await hooks.emit(PeerConnected, { peer })
          else await hooks.emit(PeerDisconnected, { peer, reason })
        },
        impaired: (reason) => services.daemon.setImpaired('network', reason),
      }))
    }
    let opening: Promise<Runtime> | undefined
    const runtime = (): Promise<Runtime> => (opening ??= open())
    hooks.on(CollectProbes, (probes) => [
      ...probes,
      {
        system: 'ofp_hmac_auth',
        run: async () => (await import('./probe.ts')).probe(opened?.network?.listener !== undefined),
      },
    ])
    metrics.observed('svc_peers_connected', 'Other daemons that are linked.', () => [
      { value: opened?.network?.links.size ?? 0 },
    ])
    routes.add(...peerRoutes(runtime))
    tools.add(...peerTools(runtime, services.agents, settings.message_timeout_secs + settings.connect_wait_secs))
    if (!settings.enabled) return {}
    hooks.on(AgentSpawned, ({ agent }) => opened?.spawned(agent))
    hooks.on(MemberEnded, ({ id }) => opened?.memberEnded(id))
    hooks.on(AgentKilled, ({ agent }) => opened?.killed(agent))
    own('the state of the network', () => services.daemon.setImpaired('network', undefined))
    background(async () => {
      await pluginsLoaded(services.daemon, 'peers', leaving)
      if (!leaving.aborted) await (await runtime()).start()
    })
    return {}
  },
})

function countWith(metrics: Metrics) {
  const frames = metrics.counter('svc_peer_frames_total', 'Frames of links with other daemons, by direction.')
  const refused = metrics.counter('svc_peer_links_refused_total', 'Links with other daemons that were refused.')
  const messages = metrics.counter('svc_peer_messages_total', 'Messages of other daemons, by what came of them.')
  return (what: 'frame_in' | 'frame_out' | 'refused' | 'answered' | 'failed'): void => {
    if (what === 'frame_in' || what === 'frame_out') frames.add(1, { direction: what.slice(6) })
    else if (what === 'refused') refused.add(1)
    else messages.add(1, { outcome: what })
  }
}
