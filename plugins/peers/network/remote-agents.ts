import type { AgentInfo, Notification } from '../links/envelope.ts'
import type { PeerLink } from '../links/link.ts'

const TIMEOUT_MS = 30_000
const MAX_AGENTS = 1_000

/** The agents of linked nodes, as those told of them. */
export class RemoteAgents {
  readonly #byNode = new Map<string, Map<string, AgentInfo>>()

  of(nodeId: string): readonly AgentInfo[] {
    return [...(this.#byNode.get(nodeId)?.values() ?? [])]
  }

  async learn(link: PeerLink): Promise<void> {
    const response = await link
      .request({ method: 'discover', query: '' }, { timeoutMs: TIMEOUT_MS })
      .catch(() => undefined)
    if (response?.method !== 'discover_result') return
    this.#byNode.set(link.nodeId, new Map(response.agents.slice(0, MAX_AGENTS).map((agent) => [agent.id, agent])))
  }
  note(nodeId: string, notification: Notification): void {
    const known = this.#byNode.get(nodeId)
    if (notification.event === 'agent_terminated') known?.delete(notification.agent_id)
    if (notification.event === 'agent_spawned' && known && known.size < MAX_AGENTS)
      known.set(notification.agent.id, notification.agent)
  }
  forget(nodeId: string): void {
    this.#byNode.delete(nodeId)
  }
}
