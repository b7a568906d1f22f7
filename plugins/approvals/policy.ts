import type { ToolDescription } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import type { Policy } from './config.ts'
import type { ApprovalsConfig } from './config.ts'
import { isRisky } from './risk.ts'

const strictness: Readonly<Record<Policy, number>> = { never: 0, risky: 1, always: 2 }
const isPolicy = (value: unknown): value is Policy => typeof value === 'string' && Object.hasOwn(strictness, value)
const stricter = (a: Policy, b: Policy): Policy => (strictness[a] > strictness[b] ? a : b)

/**
 * The policy for one agent: what the configuration sets for its id or name, else its manifest under `[metadata]
 * approval`, else the global one. A manifest can always choose a stricter one. An agent created by another agent gets
 * no looser one from its manifest or its name, which an agent chose; only the operator can give it one, by its id.
 */
export function policyOf(
  agent: Pick<Agent, 'id' | 'name' | 'manifest'>,
  config: Pick<ApprovalsConfig, 'policy' | 'agents'>,
): Policy {
  const { metadata } = agent.manifest
  const made = metadata['parent_agent_id'] !== undefined
  const ownRisk = isPolicy(metadata['approval']) ? metadata['approval'] : undefined
  const named = own(config.agents, agent.name)
  const configured = own(config.agents, agent.id) ?? (made && named ? stricter(named, config.policy) : named)
  if (configured === undefined && ownRisk !== undefined && !made) return ownRisk
  const base = configured ?? config.policy
  return ownRisk === undefined ? base : stricter(base, ownRisk)
}

/** Whether a call needs an approval whatever its arguments are. */
export function asks(
  agent: Pick<Agent, 'id' | 'name' | 'manifest'>,
  { name, risk }: Pick<ToolDescription, 'name' | 'risk'>,
  config: Pick<ApprovalsConfig, 'policy' | 'agents' | 'require_approval'>,
): boolean {
  const policy = policyOf(agent, config)
  return policy === 'always' || (policy === 'risky' && isRisky(name, risk, config.require_approval))
}

function own(agents: ApprovalsConfig['agents'], key: string): Policy | undefined {
  return Object.hasOwn(agents, key) ? agents[key] : undefined
}
