import * as v from 'valibot'

export const PeerParams = v.object({ id: v.pipe(v.string(), v.minLength(1), v.maxLength(256)) })

/** A node that is linked, or was (Interface 2.12, API facts 4.11). */
export const PeerView = v.object({
  node_id: v.string(),
  node_name: v.string(),
  address: v.string(),
  state: v.picklist(['connected', 'disconnected']),
  /** Both sides have proven who they are; a link that is open always is. */
  authenticated: v.boolean(),
  encrypted: v.boolean(),
  fingerprint: v.string(),
  agents: v.array(v.object({ id: v.string(), name: v.string(), description: v.string(), state: v.string() })),
  connected_at: v.nullable(v.string()),
  last_seen: v.nullable(v.string()),
  pinned_at: v.nullable(v.string()),
  protocol_version: v.number(),
})
export type PeerView = v.InferOutput<typeof PeerView>

export const NetworkStatus = v.object({
  enabled: v.boolean(),
  online: v.boolean(),
  /** Why it is not online although it is enabled. */
  problem: v.nullable(v.string()),
  node_id: v.nullable(v.string()),
  node_name: v.string(),
  listen_address: v.nullable(v.string()),
  listen_addr: v.nullable(v.string()),
  protocol_version: v.string(),
  connected_peers: v.number(),
  peer_count: v.number(),
  total_peers: v.number(),
  pinned_peers: v.number(),
  identity_fingerprint: v.nullable(v.string()),
  allow_unencrypted: v.boolean(),
  /** The nodes of `network.peers`. */
  dialing: v.array(
    v.object({
      address: v.string(),
      state: v.picklist(['connecting', 'connected', 'waiting']),
      problem: v.nullable(v.string()),
      next_attempt_at: v.nullable(v.string()),
    }),
  ),
})
export type NetworkStatus = v.InferOutput<typeof NetworkStatus>

export const MessageBody = v.object({
  agent: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  message: v.pipe(v.string(), v.minLength(1)),
})
