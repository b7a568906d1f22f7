import * as v from 'valibot'
import { clientArgs, escapeControls } from 'svc/cli'

export const Peer = v.looseObject({
  node_id: v.string(),
  node_name: v.string(),
  address: v.string(),
  state: v.string(),
  encrypted: v.boolean(),
  fingerprint: v.string(),
  agents: v.array(v.looseObject({ name: v.string(), description: v.string() })),
  connected_at: v.nullable(v.string()),
  last_seen: v.nullable(v.string()),
  pinned_at: v.nullable(v.string()),
})
export const Status = v.looseObject({
  enabled: v.boolean(),
  online: v.boolean(),
  problem: v.nullable(v.string()),
  node_id: v.nullable(v.string()),
  listen_address: v.nullable(v.string()),
  identity_fingerprint: v.nullable(v.string()),
  dialing: v.array(v.looseObject({ address: v.string(), state: v.string(), problem: v.nullable(v.string()) })),
})

export const peerArgs = {
  peer: { type: 'positional', required: true, description: 'Id or name of the daemon' },
  ...clientArgs,
} as const
export const pathOf = (peer: string): string => `/api/peers/${encodeURIComponent(peer)}`
/** The entries of `network.peers` that are not linked, and why. */
export const describeMissing = ({ dialing }: v.InferOutput<typeof Status>): string[] =>
  dialing
    .filter(({ state }) => state !== 'connected')
    .map(({ address, state, problem }) =>
      escapeControls(problem?.startsWith(address) ? problem : `${address}: ${problem ?? state}`),
    )
