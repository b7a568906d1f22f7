import { enforced } from 'svc/internal'
import { KeyedQueue, Refusal } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Agent, Family } from './contract.ts'
import { exceeds } from './inherit.ts'
import { editManifest, mentions, parseManifest } from './manifest.ts'
import type { ManifestEdits } from './manifest.ts'
import type { ManifestDocument } from './manifest-schema.ts'
import type { LoadedAgent } from './registry.ts'
import type { AgentService } from './service.ts'

/**
 * Where an agent came from. It is part of its manifest, so that it is on disk with the agent and no one is without it.
 */
const parentKey = 'parent_agent_id'
const rootKey = 'root_agent_id'
const depthKey = 'spawn_depth'

/** How many generations an agent may found, and of how many agents at once its family may be. */
export interface FamilyLimits {
  readonly max_depth: number
  readonly max_descendants: number
}

export class Families implements Family {
  readonly #agents: AgentService
  readonly #audit: Audit
  readonly #limits: FamilyLimits
  /** One spawn at a time in a family, so that two at once do not both take the last place. */
  readonly #queue = new KeyedQueue()
  /** Those that made agents. Most never do, and a change of theirs needs no look at all others. */
  readonly #parents = new Set<string>()
  constructor(agents: AgentService, audit: Audit, limits: FamilyLimits) {
    this.#agents = agents
    this.#audit = audit
    this.#limits = limits
  }

  /** Learns who has children. Called once, before anyone can ask. */
  async recover(): Promise<void> {
    for (const { manifest } of await this.#agents.list()) {
      const parent = text(manifest.metadata[parentKey])
      if (parent !== undefined) this.#parents.add(parent)
    }
  }

  async spawn(parentId: string, manifestToml: string): Promise<Agent> {
    const parent = await this.#agents.require(parentId)
    return this.#queue.run(rootOf(parent), async () => {
      if (!parent.manifest.capabilities.agent_spawn)
        await this.#deny(parent, 'capabilities.agent_spawn is not granted to this agent')
      const { max_depth: deepest, max_descendants: most } = this.#limits
      const depth = depthOf(parent) + 1
      if (depth > deepest)
        await this.#deny(
          parent,
          `the new agent would be ${depth} generations deep, at most ${deepest} are allowed (plugins.agents.max_depth)`,
        )
      const root = rootOf(parent)
      const live = (await this.#agents.list()).filter((agent) => agent.id !== root && rootOf(agent) === root).length
      if (live >= most)
        await this.#deny(
          parent,
          `there are ${live} agents of this family already, at most ${most} are allowed ` +
            '(plugins.agents.max_descendants)',
        )
      const { toml, right } = inherited(parent.manifest, manifestToml)
      if (right !== undefined)
        await this.#deny(parent, `the new agent would have a right that this one has not: ${right}`)
      this.#parents.add(parent.id)
      const placed = editManifest(toml, {
        [`metadata.${parentKey}`]: parent.id,
        [`metadata.${rootKey}`]: root,
        [`metadata.${depthKey}`]: depth,
      })
      return this.#agents.spawn(placed, { permission: parent.permission })
    })
  }

  async isDescendant(ancestorId: string, id: string): Promise<boolean> {
    const ancestor = await this.#agents.require(ancestorId)
    let at = await this.#agents.find(id)
    // Each one once, whatever the manifests say.
    for (const seen = new Set<string>(); at && !seen.has(at.id);) {
      seen.add(at.id)
      const parent = text(at.manifest.metadata[parentKey])
      if (parent === ancestor.id) return true
      at = parent === undefined ? undefined : await this.#agents.find(parent)
    }
    return false
  }

  async kill(ancestorId: string, id: string): Promise<Agent> {
    const ancestor = await this.#agents.require(ancestorId)
    const agent = await this.#agents.require(id)
    if (!(await this.isDescendant(ancestor.id, agent.id)))
      await this.#deny(ancestor, `agent "${agent.name}" was not made by this one`)
    return (await this.#agents.kill(agent.id)) ?? agent
  }

  /** Its rights have shrunk, perhaps: what came of it and has more now is stopped. */
  async recheck(parent: Agent): Promise<void> {
    if (!this.#parents.has(parent.id)) return
    for (const child of await this.#agents.list()) {
      if (text(child.manifest.metadata[parentKey]) !== parent.id) continue
      if (permissions.indexOf(child.permission) > permissions.indexOf(parent.permission))
        await this.#agents.setPermission(child.id, parent.permission)
      if (child.state === 'Stopped') continue
      const right = exceeds(parent.manifest, child.manifest)
      if (right === undefined) continue
      await this.#audit.write({
        event: 'capability_check',
        agentId: child.id,
        details: `stopped: it has a right that its parent "${parent.name}" has no more: ${right}`,
      })
      await this.#agents.command(child.id, 'stop')
    }
  }

  async #deny(agent: LoadedAgent, why: string): Promise<never> {
    enforced('capability_inheritance_validation')
    await this.#audit.write({ event: 'capability_check', agentId: agent.id, details: `denied: ${why}` })
    throw new Refusal('forbidden', `Refused: ${why}.`)
  }
}

/** The manifest of a child, with what it leaves open filled in, and the first right in it that the parent has not. */
export function inherited(
  parent: ManifestDocument,
  manifestToml: string,
): { readonly toml: string; readonly right: string | undefined } {
  const toml = narrow(manifestToml, parent)
  return { toml, right: exceeds(parent, parseManifest(toml).document) }
}

/** From the least to the most. */
const permissions: readonly Agent['permission'][] = ['observe', 'assist', 'full']
const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const rootOf = (agent: Agent): string => text(agent.manifest.metadata[rootKey]) ?? agent.id
const depthOf = (agent: Agent): number => {
  const depth = agent.manifest.metadata[depthKey]
  return typeof depth === 'number' ? depth : 0
}

/**
 * Fills in what the text leaves out, so that no omission makes the child wider than its parent. What the text contains
 * stays and is checked afterwards.
 */
function narrow(toml: string, parent: ManifestDocument): string {
  const child = parseManifest(toml).document
  const says = mentions(toml)
  const edits = { ...listEdits(child, parent, says), ...limitEdits(parent, says), ...policyEdits(child, parent) }
  return Object.keys(edits).length === 0 ? toml : editManifest(toml, edits)
}

type Edits = Record<string, ManifestEdits[string]>

function listEdits(child: ManifestDocument, parent: ManifestDocument, says: (path: string) => boolean): Edits {
  const edits: Edits = {}
  if (parent.tool_blocklist.length > 0)
    edits['tool_blocklist'] = [...new Set([...child.tool_blocklist, ...parent.tool_blocklist])]
  if (parent.tool_allowlist.length > 0 && child.tool_allowlist.length === 0)
    edits['tool_allowlist'] = parent.tool_allowlist
  if (!says('skills') && (parent.skills.length > 0 || parent.skills_disabled)) edits['skills_disabled'] = true
  if (!says('mcp_servers') && (parent.mcp_servers.length > 0 || parent.mcp_disabled)) edits['mcp_disabled'] = true
  return edits
}

function limitEdits(parent: ManifestDocument, says: (path: string) => boolean): Edits {
  const edits: Edits = {}
  const limits = {
    ...flat('resources', parent.resources),
    'autonomous.max_iterations': parent.autonomous.max_iterations,
    'model.max_tokens': parent.model.max_tokens,
  }
  for (const [path, limit] of Object.entries(limits)) if (typeof limit === 'number' && !says(path)) edits[path] = limit
  return edits
}

function policyEdits(child: ManifestDocument, parent: ManifestDocument): Edits {
  const edits: Edits = {}
  if (child.exec_policy === undefined && parent.exec_policy)
    Object.assign(edits, flat('exec_policy', parent.exec_policy))
  if (Object.keys(child.tools).length === 0)
    for (const [name, params] of Object.entries(parent.tools))
      if (/^[A-Za-z0-9_-]+$/.test(name) && typeof params === 'object' && params !== null)
        Object.assign(edits, flat(`tools.${name}`, params))
  const approval = parent.metadata['approval']
  if (typeof approval === 'string') edits['metadata.approval'] = approval
  return edits
}

/** The plain values of a table by path; a table in it stays out, and the check that follows tells. */
function flat(path: string, table: object): Record<string, ManifestEdits[string]> {
  return Object.fromEntries(
    Object.entries(table).flatMap(([key, value]): (readonly [string, ManifestEdits[string]])[] => {
      // A dot or a prototype's name would lead elsewhere.
      if (!/^[A-Za-z0-9_-]+$/.test(key) || key === '__proto__' || path.includes('__proto__')) return []
      if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
        return [[`${path}.${key}`, value]]
      return Array.isArray(value) && value.every((each) => typeof each === 'string') ? [[`${path}.${key}`, value]] : []
    }),
  )
}
