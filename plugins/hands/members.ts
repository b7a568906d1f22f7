import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Hooks, Statement } from 'svc/sdk'
import { TemplateAsked } from '../agents/contract.ts'
import type { Agent, Agents, Family, Manifest } from '../agents/contract.ts'
import type { Definition } from './definition.ts'
import { helperOf, manifestOf } from './manifest.ts'
import type { Part } from './manifest.ts'
import type { Instance, Member, MemberStore } from './store.ts'

export interface MembersDeps {
  readonly members: MemberStore
  readonly agents: Agents
  readonly family: Family
  readonly hooks: Pick<Hooks, 'apply'>
}

/** The agents of an instance beside its coordinator: made after it, and ended before it. */
export class Members {
  readonly #deps: MembersDeps
  /** Those that are being made, by instance and role. */
  readonly #plans = new Set<string>()
  constructor(deps: MembersDeps) {
    this.#deps = deps
  }

  of(instanceId: string): Promise<readonly Member[]> {
    return this.#deps.members.of(instanceId)
  }
  ofAgent(agentId: string): Promise<Member | undefined> {
    return this.#deps.members.ofAgent(agentId)
  }
  /** Roles that have no agent, because it was removed or the daemon ended before it was made. */
  async missing({ id }: Instance, { helpers }: Definition): Promise<readonly string[]> {
    if (helpers.length === 0) return []
    const there = new Set((await this.of(id)).map(({ role }) => role))
    return helpers.map(({ role }) => role).filter((role) => !there.has(role))
  }

  /** Makes those that are missing. `by`: the agent that activated the hand. Throws what making an agent throws. */
  async complete(instance: Instance, definition: Definition, by: string | undefined): Promise<void> {
    const { agents, family } = this.#deps
    const missing = await this.missing(instance, definition)
    for (const helper of definition.helpers.filter(({ role }) => missing.includes(role))) {
      const part = helperOf(definition, instance.name, helper)
      const toml = manifestOf(definition, instance, part, await this.base(part))
      const key = planOf(instance.id, helper.role)
      this.#plans.add(key)
      try {
        await (by === undefined ? agents.spawn(toml) : family.spawn(by, toml))
      } finally {
        this.#plans.delete(key)
      }
    }
  }
  /** Throws `conflict` for a name that is taken and `invalid_request` for a template that there is not. */
  async check(definition: Definition, instanceName: string): Promise<void> {
    for (const helper of definition.helpers) {
      const part = helperOf(definition, instanceName, helper)
      await this.base(part)
      if (await this.#deps.agents.findByName(part.name))
        throw new Refusal(
          'conflict',
          `The agent of the role "${helper.role}" would be "${part.name}", which there is already`,
        )
    }
  }
  /** The template that an agent is based on. */
  async base({ base: name, role }: Pick<Part, 'base' | 'role'>): Promise<Manifest | undefined> {
    if (name === undefined) return undefined
    const { found, names } = await this.#deps.hooks.apply(TemplateAsked, { name, names: [] })
    if (found) return this.#deps.agents.readManifest(found.toml).manifest
    const nearest = suggest(findNearest(name, names))
    throw new Refusal('invalid_request', `agents.${role}.base: there is no template "${name}"${nearest}`)
  }

  /** For the batch that makes an agent. */
  statements({ id: agentId, manifest: { metadata } }: Agent): readonly Statement[] {
    const [instanceId, role] = [String(metadata['hand_instance']), String(metadata['hand_role'])]
    return this.#plans.has(planOf(instanceId, role)) ? [this.#deps.members.insert({ instanceId, role, agentId })] : []
  }
  /** For the batch that removes an agent. */
  async endWith({ id }: Agent): Promise<readonly Statement[]> {
    return (await this.ofAgent(id)) ? [this.#deps.members.remove(id)] : []
  }
  async end(instanceId: string): Promise<void> {
    for (const { agentId } of await this.of(instanceId)) await this.#deps.agents.kill(agentId)
  }
  /** Ends those whose coordinator was removed while the daemon ended. */
  async sweep(): Promise<void> {
    for (const { agentId } of await this.#deps.members.left()) await this.#deps.agents.kill(agentId)
  }
}
const planOf = (instanceId: string, role: string): string => `${instanceId}/${role}`
