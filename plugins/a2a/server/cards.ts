import type { Agent, Agents } from '../../agents/contract.ts'
import type { ToolDescription } from 'svc/sdk'
import { HOP_COUNT, HOP_COUNT_TEXT } from '../hops.ts'
import { INPUT_MODES, OUTPUT_MODES } from './parts.ts'

export interface CardDeps {
  readonly agents: Pick<Agents, 'forCaller' | 'resolve' | 'list' | 'mayUse'>
  readonly tools: () => readonly ToolDescription[]
  readonly pushes: () => boolean
  /** Whether the daemon has a key, which others then have to send. */
  readonly needsKey: () => boolean
  readonly settings: {
    readonly name?: string | undefined
    readonly description?: string | undefined
    readonly agent?: string | undefined
  }
}
export type Skill = {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: string[]
  readonly examples: string[]
}
/** What a card says, in no version yet. */
export interface CardFacts {
  readonly agentId: string
  readonly name: string
  readonly description: string
  readonly version: string
  /** Where JSON-RPC is spoken. */
  readonly url: string
  readonly skills: readonly Skill[]
  readonly pushNotifications: boolean
  readonly needsKey: boolean
  readonly inputModes: readonly string[]
  readonly outputModes: readonly string[]
}

const MAX_TEXT = 2_000

/** Describes agents to other programs. */
export class Cards {
  readonly #deps: CardDeps
  constructor(deps: CardDeps) {
    this.#deps = deps
  }

  /** The card of the service, or of one agent. `extended`: with what only those learn who hold the key. */
  async describe(base: string, name: string | undefined, extended = false): Promise<CardFacts> {
    const { agents, settings } = this.#deps
    if (name !== undefined) return this.#facts(await agents.resolve(name), base, extended)
    const agent = await agents.forCaller(settings.agent)
    const facts = this.#facts(agent, base, extended)
    return {
      ...facts,
      name: settings.name ?? facts.name,
      description: settings.description ?? facts.description,
      url: `${base}/a2a`,
    }
  }
  /** A card for each agent, oldest first. */
  async all(base: string): Promise<readonly CardFacts[]> {
    return (await this.#deps.agents.list()).map((agent) => this.#facts(agent, base, false))
  }

  #facts(agent: Agent, base: string, extended: boolean): CardFacts {
    const { pushes, needsKey } = this.#deps
    const description = cut(agent.manifest.description) || `Agent ${agent.name}`
    return {
      agentId: agent.id,
      name: agent.name,
      description,
      version: agent.manifest.version,
      url: `${base}/a2a/agents/${encodeURIComponent(agent.name)}`,
      skills: [conversation(agent, description), ...(extended ? this.#toolSkills(agent) : [])],
      pushNotifications: pushes(),
      needsKey: needsKey(),
      inputModes: INPUT_MODES,
      outputModes: OUTPUT_MODES,
    }
  }
  #toolSkills(agent: Agent): readonly Skill[] {
    const { tools, agents } = this.#deps
    return tools()
      .filter((tool) => agents.mayUse(agent, tool))
      .map(({ name, description, risk }) => ({
        id: name,
        name: name.replaceAll('_', ' '),
        description: cut(description),
        tags: ['tool', risk],
        examples: [],
      }))
  }
}

function conversation({ name, manifest: { tags } }: Agent, description: string): Skill {
  return { id: 'conversation', name, description, tags: ['conversation', ...tags], examples: [] }
}
function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text
}

/** A card in the shape of protocol 0.3; clients of 1.0 find where to call in it too. */
export function toLegacyCard(facts: CardFacts) {
  const { name, description, url, version, skills, pushNotifications, inputModes, outputModes, needsKey } = facts
  return {
    name,
    description,
    url,
    version,
    protocolVersion: '0.3.0',
    preferredTransport: 'JSONRPC',
    supportedInterfaces: ['1.0', '0.3'].map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
    })),
    capabilities: {
      streaming: true,
      pushNotifications,
      stateTransitionHistory: true,
      extendedAgentCard: true,
      extensions: [{ uri: HOP_COUNT, description: HOP_COUNT_TEXT, required: false }],
    },
    defaultInputModes: [...inputModes],
    defaultOutputModes: [...outputModes],
    skills: [...skills],
    supportsAuthenticatedExtendedCard: true,
    ...(needsKey && {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      },
      security: [{ bearer: [] }, { apiKey: [] }],
    }),
  }
}
/** The card of the interface. */
export function toInterfaceCard(facts: CardFacts) {
  const card = toLegacyCard(facts)
  return {
    ...card,
    id: facts.agentId,
    // What clients before 0.3 call it.
    defaultInputModes: ['text', ...card.defaultInputModes],
    defaultOutputModes: ['text', ...card.defaultOutputModes],
  }
}
