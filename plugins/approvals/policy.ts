import * as v from 'valibot'
import type { Agent } from '../agents/contract.ts'
import { Policy } from './config.ts'
import type { ApprovalsConfig } from './config.ts'

const strictness: Readonly<Record<Policy, number>> = { never: 0, risky: 1, always: 2 }

/**
 * The policy for one agent: what the operator configured for it, else the global one. Its manifest may ask for a stricter one under
 * `[metadata] approval`, never for a looser one: an agent that may spawn agents writes manifests itself.
 */
export function policyOf(agent: Pick<Agent, 'id' | 'name' | 'manifest'>, config: Pick<ApprovalsConfig, 'policy' | 'agents'>): Policy {
  const base = own(config.agents, agent.id) ?? own(config.agents, agent.name) ?? config.policy
  const asked = v.safeParse(Policy, agent.manifest.metadata['approval'])
  return asked.success && strictness[asked.output] > strictness[base] ? asked.output : base
}

function own(agents: ApprovalsConfig['agents'], key: string): Policy | undefined {
  return Object.hasOwn(agents, key) ? agents[key] : undefined
}
