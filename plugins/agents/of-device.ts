import type { Hooks } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { DeviceWork, DeviceWorkAsked } from '../pairing/contract.ts'
import { AgentChanged } from './contract.ts'
import type { AgentRegistry, LoadedAgent } from './registry.ts'
import type { AgentService } from './service.ts'
import type { AgentStore } from './store.ts'

export interface OfDeviceDeps {
  readonly agents: Pick<AgentService, 'command' | 'find'>
  readonly store: Pick<AgentStore, 'find' | 'stop'>
  readonly registry: Pick<AgentRegistry, 'put'>
  readonly audit: Pick<Audit, 'entry'>
  readonly hooks: Pick<Hooks, 'emit'>
}

/** Adds the agents that a device made and that are not stopped. */
export async function addAgents(deps: OfDeviceDeps, asked: DeviceWorkAsked): Promise<DeviceWorkAsked> {
  const found: DeviceWork[] = []
  for (const { event, agentId } of asked.entries) {
    const agent = event === 'agent_spawned' ? await deps.agents.find(agentId) : undefined
    if (agent && agent.state !== 'Stopped') found.push(stopping(deps, agent, asked.reason))
  }
  return { ...asked, found: [...asked.found, ...found] }
}

function stopping(
  { agents, store, registry, audit, hooks }: OfDeviceDeps,
  { id, name, state }: LoadedAgent,
  reason: string,
): DeviceWork {
  const details = `agent "${name}": stop: ${state} to Stopped: ${reason}`
  return {
    kind: 'agent',
    id,
    name,
    agentId: id,
    statements: [
      store.stop(id, new Date().toISOString()),
      audit.entry({ event: 'agent_updated', agentId: id, details }),
    ],
    async after() {
      const row = await store.find(id)
      if (!row) return
      await hooks.emit(AgentChanged, { agent: registry.put(row) })
      // A change that had read the row before may have started it again.
      await agents.command(id, 'stop')
    },
  }
}
