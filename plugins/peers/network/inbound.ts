import { matchesWildcard, monotonicClock, readHops, stableId } from 'svc/internal'
import type { HopLimit } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Turns } from '../../chat/contract.ts'
import type { Screening } from '../../screening/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import { PeerError } from '../links/envelope.ts'
import type { AgentInfo, AgentMessage, Request, ResponseBody } from '../links/envelope.ts'
import type { PeerLink } from '../links/link.ts'
import type { TokenBudget } from './token-budget.ts'

const MAX_AGENTS = 1_000

export interface InboundDeps {
  readonly agents: Agents
  readonly turns: Turns
  readonly audit: Audit
  readonly screening: Screening
  /** Names of agents that peers see, as patterns. */
  readonly share: readonly string[]
  /** Monotonic milliseconds. */
  readonly startedAt: number
  readonly budget: TokenBudget
  readonly maxHops: HopLimit
  readonly maxAnswerBytes: number
  readonly counted: (outcome: 'answered' | 'failed') => void
}

/** Answers what other nodes ask. */
export class Inbound {
  readonly #deps: InboundDeps
  constructor(deps: InboundDeps) {
    this.#deps = deps
  }

  async answer(request: Request, link: PeerLink): Promise<ResponseBody> {
    if (request.method === 'ping')
      return { method: 'pong', uptime_secs: Math.floor((monotonicClock.now() - this.#deps.startedAt) / 1000) }
    if (request.method === 'discover') return { method: 'discover_result', agents: await this.discover(request.query) }
    try {
      const text = await this.#ask(request, link)
      this.#deps.counted('answered')
      return { method: 'agent_response', text }
    } catch (error) {
      this.#deps.counted('failed')
      throw toPeerError(error)
    }
  }

  /** Whether other nodes know of the agent. */
  isShared({ name }: Pick<Agent, 'name'>): boolean {
    return this.#deps.share.some((pattern) => matchesWildcard(pattern, name))
  }

  /** Agents that other nodes see. */
  async discover(query = ''): Promise<AgentInfo[]> {
    const words = query.trim().toLowerCase()
    const shared = (await this.#deps.agents.list()).filter((agent) => this.isShared(agent))
    const matches = ({ name, description, tags }: AgentInfo): boolean =>
      [name, description, ...tags].some((text) => text.toLowerCase().includes(words))
    return shared.map(toInfo).filter(matches).slice(0, MAX_AGENTS)
  }

  /** The same message is the same turn, however often it comes. */
  async #ask({ id, agent: name, message, sender, hops }: AgentMessage, { nodeId }: PeerLink): Promise<string> {
    const { agents, turns, budget, maxHops, maxAnswerBytes } = this.#deps
    const agent = (await agents.find(name)) ?? (await agents.findByName(name))
    if (!agent || !this.isShared(agent)) throw new PeerError(404, `There is no agent "${name}" for other nodes`)
    const through = readHops(hops, maxHops)
    const turnId = stableId('peer', nodeId, id)
    const isNew = (await turns.find(turnId)) === undefined
    if (isNew && !(await budget.allows(nodeId)))
      throw new PeerError(429, 'The messages of this node used all tokens of this hour; send it again later')
    if (isNew) await budget.add(turnId, nodeId)
    const turn = await turns.ensure({
      id: turnId,
      agentId: agent.id,
      // Agents that ask each other in a circle would wait for each other in a conversation that they come back to.
      sessionId: stableId('peer-session', nodeId, agent.id, sender ?? '', ...(through > 1 ? [`${through}`] : [])),
      text: message,
      entryPoint: 'peer',
      hops: through,
      labels: await this.#labels(message, agent, nodeId),
      resumable: true,
    })
    try {
      const { text } = await turn.result()
      const bytes = Buffer.byteLength(text)
      if (bytes <= maxAnswerBytes) return text
      throw new PeerError(413, `The answer has ${bytes} bytes; network.max_answer_bytes allows ${maxAnswerBytes} here`)
    } finally {
      // A turn that failed has its price too.
      if (isNew) await budget.settle(turnId)
    }
  }

  /** Text that addresses the model is text from outside. */
  async #labels(text: string, agent: Agent, nodeId: string): Promise<readonly Label[]> {
    const { level, findings } = await this.#deps.screening.screen(text)
    if (level === 'critical')
      await this.#deps.audit.write({
        event: 'injection_suspected',
        agentId: agent.id,
        details: `a message of node ${nodeId}: ${findings.map(({ rule }) => rule).join(', ')}`,
      })
    return level === 'critical' || level === 'warning' ? ['ExternalNetwork'] : []
  }
}

/** What peers are told of an agent: neither its prompt nor its tools. */
export function toInfo({ id, name, state, manifest }: Agent): AgentInfo {
  const { description, tags } = manifest
  return { id, name, description: description.slice(0, 4096), tags: [...tags].slice(0, 100), tools: [], state }
}

const CODES: Readonly<Record<string, number>> = {
  agent_not_found: 404,
  conflict: 409,
  payload_too_large: 413,
  invalid_request: 400,
  forbidden: 403,
  service_unavailable: 503,
}
function toPeerError(error: unknown): PeerError {
  if (error instanceof PeerError) return error
  // What went wrong inside is nothing for other nodes.
  if (!(error instanceof Refusal) && !(error instanceof UpstreamFailure))
    return new PeerError(500, 'The agent could not answer')
  const code = error instanceof Refusal ? (CODES[error.code] ?? 500) : 503
  return new PeerError(code, `The agent could not answer: ${error.message}`)
}
