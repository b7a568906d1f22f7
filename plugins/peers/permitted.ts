import { matchesWildcard } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Runtime } from './runtime.ts'
import type { PeerView } from './schema.ts'
import { findPeer } from './views.ts'

/** `capabilities.ofp_connect` names nodes by id, name or address. Throws `forbidden`. */
export async function requirePermitted(
  runtime: Runtime,
  agents: Agents,
  peer: string,
  agentId: string,
): Promise<PeerView> {
  const [found, { manifest }] = await Promise.all([findPeer(runtime, peer), agents.require(agentId)])
  const names = await namesOf(runtime, found)
  const permitted = manifest.capabilities.ofp_connect.some((pattern) =>
    names.some((name) => matchesWildcard(pattern, name)),
  )
  if (permitted) return found
  throw new Refusal(
    'forbidden',
    `This agent may not write to the daemon "${peer}": capabilities.ofp_connect of its manifest does not name it.`,
  )
}

/** A node may call itself by the id or the name of another: then its name counts for nothing. */
async function namesOf(runtime: Runtime, { node_id: id, node_name: name, address }: PeerView) {
  const isOwn = (await runtime.resolve(name))?.node_id === id
  return [id, address, ...(isOwn ? [name] : [])]
}
