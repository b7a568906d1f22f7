import type { AgentInfo, Notification } from '../links/envelope.ts'
import type { PeerLink } from '../links/link.ts'
import { plainText } from '../plain-text.ts'

const TIMEOUT_MS = 30_000
const MAX_AGENTS = 1_000
/** Characters kept of all agents of a node. Whoever knows the secret can come under many names, with long texts. */
const MAX_CHARS = 262_144

export type KnownAgent = Pick<AgentInfo, 'id' | 'name' | 'description' | 'state'>

/** The agents of linked nodes, as those told of them. */
export class RemoteAgents {
  readonly #byNode = new Map<string, NodeAgents>()

  of(nodeId: string): readonly KnownAgent[] {
    return this.#byNode.get(nodeId)?.list() ?? []
  }

  /** Rejects with why it could not be learned. */
  async learn(link: PeerLink): Promise<void> {
    const response = await link.request({ method: 'discover', query: '' }, { timeoutMs: TIMEOUT_MS })
    if (response.method !== 'discover_result') throw new Error(`it answered "${response.method}"`)
    this.set(link.nodeId, response.agents)
  }
  set(nodeId: string, agents: readonly AgentInfo[]): void {
    const known = new NodeAgents()
    for (const agent of agents.slice(0, MAX_AGENTS)) known.add(agent)
    this.#byNode.set(nodeId, known)
  }
  note(nodeId: string, notification: Notification): void {
    const known = this.#byNode.get(nodeId)
    if (notification.event === 'agent_terminated') known?.remove(notification.agent_id)
    if (notification.event === 'agent_spawned') known?.add(notification.agent)
  }
  forget(nodeId: string): void {
    this.#byNode.delete(nodeId)
  }
}

class NodeAgents {
  readonly #byId = new Map<string, KnownAgent>()
  #chars = 0

  list(): readonly KnownAgent[] {
    return [...this.#byId.values()]
  }
  /** The description is cut to the room that is left; without room for a name the agent is left out. */
  add({ id, name, description, state }: AgentInfo): void {
    this.remove(id)
    const named = { id, name: plainText(name, 256), description: '', state: plainText(state, 64) }
    const left = MAX_CHARS - this.#chars - charsOf(named)
    if (this.#byId.size >= MAX_AGENTS || left < 0) return
    const agent: KnownAgent = { ...named, description: plainText(description, Math.min(4096, left)) }
    this.#byId.set(id, agent)
    this.#chars += charsOf(agent)
  }
  remove(id: string): void {
    const known = this.#byId.get(id)
    if (!known) return
    this.#byId.delete(id)
    this.#chars -= charsOf(known)
  }
}

/** Only what is shown is kept. */
const charsOf = ({ id, name, description, state }: KnownAgent): number =>
  id.length + name.length + description.length + state.length
