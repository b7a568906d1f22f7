import { findNearest, suggest } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import type { Hooks, Statement } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { TemplateAsked } from './contract.ts'
import type { Agent, Agents, AgentSummary, ModelChoice, SpawnAuthor } from './contract.ts'
import type { AgentChanges } from './changes.ts'
import type { CloneOptions } from './clone.ts'
import type { IdentityChange } from './identity.ts'
import { checkManifestSize, parseManifest } from './manifest.ts'
import type { ManifestEdits } from './manifest.ts'
import type { ChooseModel, NameModel } from './model-names.ts'
import type { LoadedAgent, AgentRegistry } from './registry.ts'
import type { NewAgent } from './schema.ts'
import { grants, mayMessage } from './rights.ts'
import { SHIPPED } from './signing.ts'
import type { Opened, Signatures } from './signing.ts'
import type { Command } from './state.ts'
import type { AgentStore } from './store.ts'
import { mayUse } from './tool-rights.ts'
import type { ToolFacts } from './tool-rights.ts'

export interface AgentServiceDeps {
  readonly store: AgentStore
  readonly registry: AgentRegistry
  readonly audit: Audit
  readonly hooks: Hooks
  readonly maxManifestBytes: number
  readonly signatures: Signatures
  names(): Promise<NameModel>
  readonly choose: ChooseModel
  modelWarnings(manifest: Agent['manifest']): Promise<readonly string[]>
  /** Throws `forbidden` for an address that no model may be called at. */
  admit(baseUrl: string): Promise<void>
  /** An envelope that proves who made this manifest (`ShippedProofs.seal`). */
  sealShipped(manifestToml: string): Promise<string>
  /** The names of all skills there are now. */
  skills(): Promise<readonly string[]>
}

export interface SpawnOptions {
  /** Instead of the name in the manifest. */
  readonly name?: string | undefined
  /** Instead of those in the manifest: these and no other. `*` alone is all of them. */
  readonly skills?: readonly string[] | undefined
  readonly id?: string | undefined
  readonly permission?: Agent['permission']
  /** Who signed it; `null` when nobody did. */
  readonly signedBy?: string | null
  /** The signed manifest as it was sent. */
  readonly envelope?: string | null
  /** It came with svc: then it counts as signed by svc. */
  readonly isShipped?: boolean | undefined
  /** First in the batch, which fails with them. */
  readonly conditions?: readonly Statement[]
  /** The agent that makes it. */
  readonly by?: SpawnAuthor | undefined
  /** What wakes it is disabled. */
  readonly isResting?: boolean | undefined
  /** What an error calls the manifest. */
  readonly file?: string | undefined
}

/** The registered agents. What changes them is loaded with the first change. */
export class AgentService implements Agents {
  readonly #deps: AgentServiceDeps
  #loadedChanges: AgentChanges | undefined

  constructor(deps: AgentServiceDeps) {
    this.#deps = deps
  }

  find(id: string): Promise<LoadedAgent | undefined> {
    return this.#deps.registry.find(id)
  }
  findByName(name: string): Promise<LoadedAgent | undefined> {
    return this.#deps.registry.findByName(name)
  }
  list(): Promise<readonly LoadedAgent[]> {
    return this.#deps.registry.list()
  }
  /** Without reading them. */
  count(): Promise<number> {
    return this.#deps.store.count()
  }
  async require(id: string): Promise<LoadedAgent> {
    const agent = await this.find(id)
    if (!agent) throw new Refusal('agent_not_found', `No agent ${id}`)
    return agent
  }
  async resolve(idOrName: string): Promise<LoadedAgent> {
    const isId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(idOrName)
    const agent = (isId ? await this.find(idOrName.toLowerCase()) : undefined) ?? (await this.findByName(idOrName))
    if (agent) return agent
    const names = (await this.list()).map(({ name }) => name)
    throw new Refusal('agent_not_found', `There is no agent "${idOrName}"${suggest(findNearest(idOrName, names))}`)
  }
  async forCaller(configured?: string): Promise<LoadedAgent> {
    if (configured !== undefined) return this.resolve(configured)
    const [first] = await this.list()
    if (!first) throw new Refusal('agent_not_found', 'There is no agent yet: spawn one first')
    return first
  }
  names(): Promise<NameModel> {
    return this.#deps.names()
  }
  /** What is known of the manifest and of the models it names, for the answer to who made or changed the agent. */
  async warnings(agent: LoadedAgent): Promise<readonly string[]> {
    const { warningsOf } = await import('./new-manifest.ts')
    return [...(await warningsOf(agent, this.#deps.skills)), ...(await this.#deps.modelWarnings(agent.manifest))]
  }
  async summaries(): Promise<readonly AgentSummary[]> {
    return this.summarise(await this.list())
  }
  async summarise(agents: readonly LoadedAgent[]): Promise<AgentSummary[]> {
    const name = await this.#deps.names()
    return agents.map((agent) => {
      const { provider, model } = name(agent.listed)
      return {
        id: agent.id,
        name: agent.name,
        state: agent.state,
        created_at: agent.createdAt,
        model_provider: provider,
        model_name: model,
      }
    })
  }

  async requireRunning(id: string): Promise<LoadedAgent> {
    const agent = await this.require(id)
    checkRunning(agent)
    return agent
  }
  mayUse(agent: Agent, tool: ToolFacts): boolean {
    return mayUse(agent.manifest, agent.permission, tool)
  }
  mayMessage(from: Agent, to: Agent): boolean {
    return mayMessage(from, to)
  }

  /** The manifest a caller sends, signed or not, or names. Throws `forbidden` for a signature that is not believed. */
  async open(body: NewAgent): Promise<Opened> {
    if (body.signed_manifest === undefined)
      return body.manifest_toml
        ? { toml: body.manifest_toml, signedBy: null, envelope: null }
        : await this.#openTemplate(body.template)
    // With another name or other skills it would be another text than the one that was signed.
    if (body.name !== undefined || body.template !== undefined || body.skills !== undefined)
      throw new Refusal(
        'invalid_request',
        'signed_manifest: a signed manifest keeps its name and its skills; send it without name, template and skills',
      )
    return await this.#deps.signatures.open(body.signed_manifest, body.manifest_toml)
  }
  /** Only a template that came with svc counts as signed. Throws `template_not_found`, and what makes it unusable. */
  async #openTemplate(name: string | undefined): Promise<Opened> {
    if (name === undefined) throw new Refusal('invalid_request', 'manifest_toml: a manifest or a template is needed')
    const { found, names } = await this.#deps.hooks.apply(TemplateAsked, { name, names: [] })
    if (!found) {
      const nearest = suggest(findNearest(name, names)) || `; ${commandLine('template list')} names them`
      throw new Refusal('template_not_found', `No template ${name}${nearest}`)
    }
    return { toml: found.toml, signedBy: found.isShipped ? SHIPPED : null, envelope: null }
  }
  readManifest(manifestToml: string) {
    this.#checkSize(manifestToml)
    const { document, warnings, unknown } = parseManifest(manifestToml)
    return { manifest: document, warnings, unknown }
  }
  /** Warnings beside those of the manifest itself. */
  unsigned(agent: LoadedAgent): readonly string[] {
    return this.#deps.signatures.warnings(agent.row.signed_by)
  }

  async checkMemory(id: string, access: 'read' | 'write', key: string): Promise<void> {
    const agent = await this.require(id)
    const { memory_read: readable, memory_write: writable } = agent.manifest.capabilities
    if (grants(access === 'read' ? readable : writable, key, true)) return
    await this.#deps.audit.write({
      event: 'capability_check',
      agentId: agent.id,
      details: `denied: memory_${access} of "${key}"`,
    })
    throw new Refusal(
      'forbidden',
      `agent "${agent.name}" may not ${access} memory key "${key}" (capabilities.memory_${access})`,
    )
  }

  async readableMemory(id: string, keys: readonly string[]): Promise<readonly string[]> {
    const {
      manifest: { capabilities },
    } = await this.require(id)
    return keys.filter((key) => grants(capabilities.memory_read, key, true))
  }

  /** What a name resolves to as the model of an agent. An address of its own may offer a model of any name. */
  async modelOf({ manifest: { model } }: LoadedAgent, requested: string, provider?: string): Promise<ModelChoice> {
    if (provider !== undefined) return { provider, model: requested }
    if (model.base_url !== undefined) return { provider: model.provider, model: requested }
    return this.#deps.choose(requested, model.provider)
  }

  /** As `AgentChanges.check`. */
  async check(opened: Opened, id?: string): Promise<LoadedAgent> {
    return (await this.#changes()).check(opened, id)
  }
  /** `name` replaces the one in the manifest. `id` is given by a caller who may have to repeat the request. */
  async spawn(manifestToml: string, options: SpawnOptions = {}): Promise<LoadedAgent> {
    return (await this.#changes()).spawn(manifestToml, options)
  }
  /** Another agent by the same rules, with a session of its own. Throws like `spawn`, and `agent_not_found`. */
  async clone(id: string, options: CloneOptions): Promise<LoadedAgent> {
    return (await this.#changes()).clone(id, options)
  }
  /** Finishes agents that an earlier version left half created. Called once, before any request. */
  async recover(): Promise<void> {
    const unfinished = await this.#deps.store.unfinished()
    if (unfinished.length > 0) await (await this.#changes()).finish(unfinished)
  }
  /**
   * Whether the agent moved; `false` when it was there already. Throws `agent_not_found`, and `conflict` for a move
   * that is not allowed.
   */
  async command(id: string, command: Command): Promise<{ readonly agent: LoadedAgent; readonly moved: boolean }> {
    return (await this.#changes()).command(id, command)
  }
  /** `Stable` pins what the model and the skills are now; pinning again changes nothing. */
  async setMode(id: string, mode: 'Normal' | 'Stable'): Promise<LoadedAgent> {
    return (await this.#changes()).setMode(id, mode)
  }
  async setPermission(id: string, permission: Agent['permission']): Promise<LoadedAgent> {
    return (await this.#changes()).setPermission(id, permission)
  }
  async kill(id: string): Promise<LoadedAgent | undefined> {
    return (await this.#changes()).kill(id)
  }
  async activate(id: string, sessionId: string): Promise<void> {
    await (await this.#changes()).activate(id, sessionId)
  }
  /** By a model of its provider, an alias, or `provider/model`. Throws like `edit`. */
  async setModel(
    id: string,
    requested: string,
    provider?: string,
  ): Promise<ModelChoice & { readonly warnings: readonly string[] }> {
    return (await this.#changes()).setModel(id, requested, provider)
  }
  /** Replaces the whole manifest. Throws like `spawn`, and `agent_not_found`. */
  async replace(id: string, opened: Opened): Promise<LoadedAgent> {
    return (await this.#changes()).replace(id, opened)
  }
  /**
   * Changes values inside the manifest, and of the identity. Throws `invalid_request` when the result is invalid, and
   * `conflict` for a name in use.
   */
  async edit(id: string, edits: ManifestEdits, identity?: IdentityChange): Promise<LoadedAgent> {
    return (await this.#changes()).edit(id, edits, identity)
  }

  /** One for all changes, so that those of one agent follow each other. */
  async #changes(): Promise<AgentChanges> {
    const { AgentChanges: Changes } = await import('./changes.ts')
    return (this.#loadedChanges ??= new Changes(this.#deps, this))
  }

  #checkSize(manifestToml: string): void {
    checkManifestSize(manifestToml, this.#deps.maxManifestBytes)
  }
}

/** Throws unless the agent accepts messages. */
function checkRunning({ name, state, refused }: LoadedAgent): void {
  if (refused !== undefined) throw new Refusal('forbidden', `agent "${name}" does not run: ${refused}`)
  if (state === 'Running') return
  if (state === 'Created' || state === 'Initializing')
    throw new Refusal('service_unavailable', `agent "${name}" is being created; try again`, { retryAfterSecs: 1 })
  throw new Refusal(
    'conflict',
    `agent "${name}" is ${state} and accepts no messages; ${state === 'Paused' ? 'resume' : 'start'} it first`,
    { details: { state } },
  )
}
