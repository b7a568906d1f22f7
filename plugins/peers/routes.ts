import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Runtime } from './runtime.ts'
import { MessageBody, NetworkStatus, PeerParams, PeerView } from './schema.ts'

export type LazyRuntime = () => Promise<Runtime>
const auth = 'bearer' as const

export function peerRoutes(runtime: LazyRuntime): readonly AnyRoute[] {
  return [statusRoute(runtime), ...readRoutes(runtime), unpinRoute(runtime), pingRoute(runtime), sendRoute(runtime)]
}

function statusRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/network/status',
    summary: 'Whether this daemon links with others, and how',
    auth,
    effect: 'read',
    cost: 1,
    returns: NetworkStatus,
    handle: async () => (await import('./views.ts')).networkStatus(await runtime()),
  })
}

function readRoutes(runtime: LazyRuntime): readonly AnyRoute[] {
  const list = defineRoute({
    method: 'GET',
    path: '/api/peers',
    summary: 'The daemons that are linked, and those that were',
    auth,
    effect: 'read',
    cost: 2,
    returns: v.object({ peers: v.array(PeerView), total: v.number() }),
    async handle() {
      const peers = [...(await (await import('./views.ts')).listPeers(await runtime()))]
      return { peers, total: peers.length }
    },
  })
  const read = defineRoute({
    method: 'GET',
    path: '/api/peers/:id',
    summary: 'One of them, by its id or its name',
    auth,
    effect: 'read',
    cost: 1,
    params: PeerParams,
    returns: PeerView,
    errors: ['not_found'],
    handle: async ({ params }) => (await import('./views.ts')).findPeer(await runtime(), params.id),
  })
  return [list, read]
}

function unpinRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/peers/:id/pin',
    summary: 'Forget the key of a daemon, so that it may come with another',
    description: 'For a daemon that was set up anew. Its link ends; the key it shows next is the one it must have.',
    auth,
    effect: 'lasting',
    cost: 5,
    params: PeerParams,
    returns: v.object({ status: v.literal('unpinned'), node_id: v.string() }),
    errors: ['not_found'],
    async handle({ params }) {
      const opened = await runtime()
      const { node_id: nodeId } = await (await import('./views.ts')).findPeer(opened, params.id)
      await opened.unpin(nodeId)
      return { status: 'unpinned' as const, node_id: nodeId }
    },
  })
}

function pingRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/peers/:id/ping',
    summary: 'Ask a linked daemon whether it is there',
    auth,
    effect: 'read',
    cost: 2,
    params: PeerParams,
    returns: v.object({ latency_ms: v.number(), uptime_secs: v.number() }),
    errors: ['not_found', 'service_unavailable'],
    async handle({ params, signal }) {
      const { ping } = await import('./messages.ts')
      const { latencyMs, uptimeSecs } = await ping(await runtime(), params.id, signal)
      return { latency_ms: latencyMs, uptime_secs: uptimeSecs }
    },
  })
}

function sendRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/peers/:id/messages',
    summary: 'Send a message to an agent of another daemon and wait for the answer',
    description:
      'While the daemon is away the message waits for it, `network.connect_wait_secs` at most. With an ' +
      '`Idempotency-Key` the other daemon answers the message once, however often it is sent.',
    auth,
    effect: 'conversation',
    cost: 10,
    params: PeerParams,
    body: MessageBody,
    idempotent: true,
    returns: v.object({ message_id: v.string(), text: v.string() }),
    errors: ['agent_not_found', 'conflict', 'forbidden', 'not_found', 'payload_too_large', 'service_unavailable'],
    example: { body: { agent: 'assistant', message: 'What is the weather at your place?' } },
    async handle({ params, body, effectId, signal }) {
      const { sendMessage } = await import('./messages.ts')
      const id = effectId ?? randomUUID()
      const message = { id, peer: params.id, agent: body.agent, text: body.message }
      return { message_id: id, text: await sendMessage(await runtime(), message, signal) }
    },
  })
}
