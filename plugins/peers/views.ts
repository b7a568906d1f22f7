import { toIso } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { VERSION } from './handshake.ts'
import { fingerprintOf } from './identity.ts'
import { describe } from './network/shared-links.ts'
import type { Runtime } from './runtime.ts'
import type { NetworkStatus, PeerView } from './schema.ts'
import type { PinRow } from './store.ts'

/** Every node that is linked or was, the linked ones first. */
export async function listPeers(runtime: Runtime): Promise<readonly PeerView[]> {
  const rows = await runtime.pins.list()
  const views = rows.map((row) => toPeer(row, runtime))
  return views.toSorted((one, other) => Number(other.state === 'connected') - Number(one.state === 'connected'))
}

/** By id or name. Throws `not_found`. */
export async function findPeer(runtime: Runtime, idOrName: string): Promise<PeerView> {
  const row = await runtime.resolve(idOrName)
  if (row) return toPeer(row, runtime)
  throw new Refusal('not_found', `There is no peer "${idOrName}"`)
}

function toPeer(row: PinRow, { network, shared }: Runtime): PeerView {
  const own = network?.links.find(row.node_id)
  const elsewhere = own ? undefined : shared?.find(row.node_id)
  const link = own ? describe(own) : elsewhere
  const agents = elsewhere?.agents ?? network?.agents.of(row.node_id) ?? []
  return {
    node_id: row.node_id,
    node_name: link?.node_name ?? row.node_name,
    address: link?.address ?? row.address,
    state: link ? 'connected' : 'disconnected',
    authenticated: link !== undefined,
    encrypted: link?.encrypted ?? false,
    fingerprint: row.public_key === '' ? '' : fingerprintOf(row.public_key),
    agents: agents.map(({ id, name, description, state }) => ({
      id,
      name,
      description,
      state,
    })),
    connected_at: link ? toIso(link.opened_at) : null,
    last_seen: toIso(link?.last_seen ?? row.last_seen),
    pinned_at: toIso(row.pinned_at),
    protocol_version: VERSION,
  }
}

export async function networkStatus(runtime: Runtime): Promise<NetworkStatus> {
  const { network, settings, problem, identity, pins } = runtime
  const connected = network?.links.size ?? 0
  const pinned = await pins.count()
  const listener = network?.listener
  const address = listener
    ? `${listener.host.includes(':') ? `[${listener.host}]` : listener.host}:${listener.port}`
    : null
  return {
    enabled: settings.enabled,
    online: network !== undefined,
    problem: problem ?? null,
    node_id: runtime.nodeId ?? null,
    node_name: runtime.nodeName,
    listen_address: address,
    listen_addr: address,
    protocol_version: `ofp/${VERSION}`,
    connected_peers: connected,
    peer_count: connected,
    total_peers: pinned,
    pinned_peers: pinned,
    identity_fingerprint: identity?.fingerprint ?? null,
    allow_unencrypted: settings.allow_unencrypted,
    dialing: (network?.dialers ?? []).map(({ target, state, problem: why, nextAttemptAt }) => ({
      address: target.address,
      state,
      problem: why ?? null,
      next_attempt_at: nextAttemptAt === undefined ? null : toIso(nextAttemptAt),
    })),
  }
}
