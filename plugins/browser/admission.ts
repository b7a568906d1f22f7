import { allowsHost } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Admission } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'

export interface AdmissionDeps {
  readonly agents: Pick<Agents, 'require'>
  readonly audit: Pick<Audit, 'write'>
}
/** Hosts that the pages of one browser may connect to: each adds an entry to the audit log. */
const MAX_HOSTS = 1000

/**
 * Decides each connection of a browser by the host patterns of its agent, as they are then. The outbound rules decide
 * after it, by the address.
 */
export function admission({ agents, audit }: AdmissionDeps, agentId: string): Admission {
  const recorded = new Set<string>()
  return async (url) => {
    const patterns = (await agents.require(agentId)).manifest.capabilities.network
    const allowed = allowsHost(patterns, url)
    const details = `${allowed ? '' : 'denied: '}browser to ${url.host}`
    if (!recorded.has(details)) {
      if (recorded.size >= MAX_HOSTS)
        throw new Refusal(
          'forbidden',
          `One browser may connect to ${MAX_HOSTS} hosts, and this one has reached that limit`,
        )
      recorded.add(details)
      await audit.write({ event: allowed ? 'network_access' : 'capability_check', agentId, details })
    }
    if (!allowed) throw notAllowed(url, patterns)
  }
}

export function notAllowed(url: URL, patterns: readonly string[]): Refusal {
  return new Refusal(
    'forbidden',
    patterns.length === 0
      ? 'This agent may not use the network: capabilities.network of its manifest is empty.'
      : `This agent may not reach ${url.host}. capabilities.network of its manifest allows: ${patterns.join(', ')}.`,
  )
}
