import { randomUUID } from 'node:crypto'
import { v7 } from 'uuid'
import { enforced, findNearest, isNotHeld, readOwnJson, suggest } from 'svc/internal'
import { commandLine, KeyedQueue, Refusal } from 'svc/sdk'
import type { Hooks, Statement } from 'svc/sdk'
import type { Audit, AuditChange, AuditRecord } from '../audit/contract.ts'
import {
  AgentChanged,
  AgentChanging,
  AgentKilled,
  AgentKilling,
  AgentSpawned,
  AgentSpawning,
  TemplateAsked,
} from './contract.ts'
import type { Agent, Agents, AgentState, AgentSummary, Manifest, ModelChoice, SpawnAuthor } from './contract.ts'
import type { CloneOptions } from './clone.ts'
import type { IdentityChange } from './identity.ts'
import { editManifest, parseManifest } from './manifest.ts'
import type { ManifestEdits, ParsedManifest } from './manifest.ts'
import type { ManifestDocument } from './manifest-schema.ts'
import type { ChooseModel, NameModel } from './model-names.ts'
import { checkPinned, pinOf } from './pin.ts'
import type { LoadedAgent, AgentRegistry } from './registry.ts'
import type { AgentRow, NewAgent } from './schema.ts'
import { grants, mayMessage } from './rights.ts'
import { SHIPPED } from './signing.ts'
import type { Opened, Signatures } from './signing.ts'
import { path } from './state.ts'
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

/** How often a change is repeated when other daemons change the same agent meanwhile. */
const MAX_TRIES = 5
/** `what` is for the audit log. `isWhole`: somebody sent the whole manifest. */
type Change = Partial<AgentRow> & { readonly what?: string; readonly isWhole?: boolean }
const loadNewManifest = () => import('./new-manifest.ts')
/** Of the model's section, what belongs to the provider and not to the agent. */
const OF_PROVIDER = ['base_url', 'api_key_env'] as const

/** The edits that go with a move to another provider: its requests do not go to the address of the old one. */
function leaving({ manifest: { model } }: LoadedAgent, edits: ManifestEdits): ManifestEdits {
  const provider = edits['model.provider']
  if (provider === undefined || provider === model.provider) return {}
  return Object.fromEntries(
    OF_PROVIDER.filter((key) => model[key] !== undefined).map((key) => [`model.${key}`, undefined]),
  )
}
/** What was removed together with the old provider, for the caller who changed it. */
function leftBehind({ manifest: { model: before } }: LoadedAgent, { manifest: { model } }: LoadedAgent): string[] {
  if (before.provider === model.provider) return []
  return OF_PROVIDER.filter((key) => before[key] !== undefined && model[key] === undefined).map(
    (key) => `"model.${key}" was that of provider ${before.provider} and is removed`,
  )
}

/** The registered agents, and every change to them. A change and its audit entry are on disk before it is announced. */
export class AgentService implements Agents {
  readonly #deps: AgentServiceDeps
  /** Changes of one agent follow each other, so that none is lost between its read and its write. */
  readonly #queue = new KeyedQueue()

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

  /** `name` replaces the one in the manifest. `id` is given by a caller who may have to repeat the request. */
  async spawn(manifestToml: string, options: SpawnOptions = {}): Promise<LoadedAgent> {
    this.#checkSize(manifestToml)
    const { name, skills, id, permission = 'full', isShipped = false } = options
    try {
      const named = name === undefined ? manifestToml : editManifest(manifestToml, { name })
      const { toml, isWider } = skills
        ? (await loadNewManifest()).withSkills(named, skills)
        : { toml: named, isWider: false }
      const { signedBy = null, envelope = null } = isWider
        ? {}
        : isShipped
          ? { signedBy: SHIPPED, envelope: await this.#deps.sealShipped(manifestToml) }
          : options
      this.#deps.signatures.admit(signedBy)
      const more = { permission, signed_by: signedBy, envelope, ...(id === undefined ? {} : { id }) }
      return await this.#register(toml, more, options)
    } catch (error) {
      throw (await loadNewManifest()).withLine(manifestToml, error, {
        replaced: name === undefined ? [] : ['name'],
        ...(options.file !== undefined && { file: options.file }),
      })
    }
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

  /** Another agent by the same rules, with a session of its own. Throws like `spawn`, and `agent_not_found`. */
  async clone(id: string, options: CloneOptions): Promise<LoadedAgent> {
    const agent = await this.require(id)
    const { cloneManifest, cloneName } = await import('./clone.ts')
    const name =
      options.name ??
      (await cloneName(agent.name, async (candidate) => (await this.findByName(candidate)) !== undefined))
    const { mode, permission, identity, pin, signed_by, envelope } = agent.row
    // A clone has at most what the signed one has.
    this.#deps.signatures.admit(signed_by)
    return this.#register(cloneManifest(agent.manifestToml, name, options), {
      mode,
      permission,
      identity,
      pin,
      signed_by,
      envelope,
      cloned_from: agent.id,
      ...(options.id === undefined ? {} : { id: options.id }),
    })
  }

  /** Finishes agents that an earlier version left half created. Called once, before any request. */
  async recover(): Promise<void> {
    for (const id of await this.#deps.store.unfinished())
      await this.#change(id, ({ state, manifest }) =>
        state === 'Created' || state === 'Initializing' ? { state: initialState(manifest) } : undefined,
      )
  }

  async #register(
    toml: string,
    more: Partial<AgentRow> = {},
    { conditions = [], by, isResting }: Pick<SpawnOptions, 'conditions' | 'by' | 'isResting'> = {},
  ): Promise<LoadedAgent> {
    const parsed = parseManifest(toml)
    await this.#checkAddresses(parsed.document)
    const now = new Date().toISOString()
    const row: AgentRow = {
      // In the order of creation, also within a millisecond: lists are sorted by it.
      id: v7(),
      name: parsed.document.name,
      manifest_toml: toml,
      state: initialState(parsed.document),
      mode: 'Normal',
      session_id: randomUUID(),
      created_at: now,
      updated_at: now,
      permission: 'full',
      identity: '{}',
      pin: null,
      cloned_from: null,
      signed_by: null,
      envelope: null,
      ...more,
    }
    const details = `agent "${row.name}" spawned${row.cloned_from === null ? '' : ` as a clone of ${row.cloned_from}`}`
    const { hooks, registry, store } = this.#deps
    const spawning = { agent: registry.read(row, parsed), statements: [], by, isResting }
    const { statements } = await hooks.apply(AgentSpawning, spawning)
    await this.#commit(row, [...conditions, store.insert(row), ...statements], {
      event: 'agent_spawned',
      agentId: row.id,
      details,
    })
    const agent = registry.put(row, parsed)
    await hooks.emit(AgentSpawned, { agent })
    return agent
  }

  /**
   * Whether the agent moved; `false` when it was there already. Throws `agent_not_found`, and `conflict` for a move
   * that is not allowed.
   */
  async command(id: string, command: Command): Promise<{ readonly agent: LoadedAgent; readonly moved: boolean }> {
    let moved = false
    const agent = await this.#change(id, ({ name, state }) => {
      const to = path(name, state, command).at(-1)
      if (to === undefined) return undefined
      moved = true
      return { state: to, what: `${command}: ${state} to ${to}` }
    })
    return { agent, moved }
  }

  /** `Stable` pins what the model and the skills are now; pinning again changes nothing. */
  async setMode(id: string, mode: 'Normal' | 'Stable'): Promise<LoadedAgent> {
    const [names, skills] = await Promise.all([this.#deps.names(), this.#deps.skills()])
    return this.#change(id, async (agent) => {
      if (agent.mode === mode) return undefined
      const pin = mode === 'Stable' ? await pinOf(agent.manifest, names, this.#deps.choose, skills) : undefined
      return {
        mode,
        pin: pin ? JSON.stringify(pin) : null,
        what: pin ? `mode Stable, pinned to ${pin.model.provider}/${pin.model.model}` : 'mode Normal',
      }
    })
  }
  setPermission(id: string, permission: Agent['permission']): Promise<LoadedAgent> {
    return this.#change(id, (agent) =>
      agent.permission === permission ? undefined : { permission, what: `permission ${permission}` },
    )
  }

  kill(id: string): Promise<LoadedAgent | undefined> {
    return this.#queue.run(id.toLowerCase(), async () => {
      const agent = await this.find(id)
      if (!agent) return undefined
      const { store, audit, registry, hooks } = this.#deps
      const { statements } = await hooks.apply(AgentKilling, { agent, statements: [] })
      await store.commit(
        store.remove(agent.id),
        ...statements,
        audit.entry({ event: 'agent_killed', agentId: agent.id, details: `agent "${agent.name}" killed` }),
      )
      registry.drop(agent.id)
      await hooks.emit(AgentKilled, { agent })
      return agent
    })
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

  async activate(id: string, sessionId: string): Promise<void> {
    // The plugin that owns the sessions records a move between them.
    await this.#change(id, (agent) => (agent.sessionId === sessionId ? undefined : { session_id: sessionId }))
  }

  /** What a name resolves to as the model of an agent. An address of its own may offer a model of any name. */
  async modelOf({ manifest: { model } }: LoadedAgent, requested: string, provider?: string): Promise<ModelChoice> {
    if (provider !== undefined) return { provider, model: requested }
    if (model.base_url !== undefined) return { provider: model.provider, model: requested }
    return this.#deps.choose(requested, model.provider)
  }
  /** By a model of its provider, an alias, or `provider/model`. Throws like `edit`. */
  async setModel(
    id: string,
    requested: string,
    provider?: string,
  ): Promise<ModelChoice & { readonly warnings: readonly string[] }> {
    const agent = await this.require(id)
    const chosen = await this.modelOf(agent, requested, provider)
    const changed = await this.edit(id, { 'model.model': chosen.model, 'model.provider': chosen.provider })
    const [names, warnings] = await Promise.all([
      this.#deps.names(),
      this.#deps.modelWarnings({ ...changed.manifest, fallback_models: [] }),
    ])
    return { ...names(changed.manifest.model), warnings: [...warnings, ...leftBehind(agent, changed)] }
  }

  /** Replaces the whole manifest. Throws like `spawn`, and `agent_not_found`. */
  async replace(id: string, { toml, signedBy, envelope }: Opened): Promise<LoadedAgent> {
    this.#checkSize(toml)
    this.#deps.signatures.admit(signedBy)
    const { isOlder } = await import('./open-signed.ts')
    const change = ({ name, manifest, row }: LoadedAgent): Change => {
      const { version } = parseManifest(toml).document
      // Yesterday's manifest has a good signature too.
      if (row.signed_by !== null && signedBy !== null && isOlder(version, manifest.version))
        throw new Refusal(
          'conflict',
          `agent "${name}" has version ${manifest.version} of its signed manifest; ${version} is older`,
        )
      return {
        manifest_toml: toml,
        signed_by: signedBy,
        envelope,
        what: `manifest replaced${signedBy === null ? '' : `, signed by ${signedBy}`}`,
        isWhole: true,
      }
    }
    return this.#change(id, change).catch(async (error: unknown) => {
      throw (await loadNewManifest()).withLine(toml, error)
    })
  }

  /**
   * Changes values inside the manifest, and of the identity. Throws `invalid_request` when the result is invalid, and
   * `conflict` for a name in use.
   */
  edit(id: string, edits: ManifestEdits, identity?: IdentityChange): Promise<LoadedAgent> {
    return this.#change(id, async (agent) => ({
      ...(Object.keys(edits).length === 0
        ? {}
        : { manifest_toml: editManifest(agent.manifestToml, { ...leaving(agent, edits), ...edits }) }),
      ...(identity
        ? {
            identity: JSON.stringify(
              await (await import('./identity-change.ts')).changeIdentity(agent.identity, identity),
            ),
          }
        : {}),
      what: `changed ${[...Object.keys(edits), ...Object.keys(identity ?? {})].join(', ')}`,
    }))
  }

  /** `what` is for the audit log; without it nothing is written there. */
  #change(
    id: string,
    change: (agent: LoadedAgent) => Change | undefined | Promise<Change | undefined>,
  ): Promise<LoadedAgent> {
    return this.#queue.run(id.toLowerCase(), async () => {
      for (let tries = 1; ; tries++)
        try {
          return await this.#changeOnce(id, change)
        } catch (error) {
          // Another daemon has changed it since it was read.
          if (tries === MAX_TRIES || !(error instanceof Refusal) || !isNotHeld(error.cause)) throw error
        }
    })
  }
  async #changeOnce(
    id: string,
    change: (agent: LoadedAgent) => Change | undefined | Promise<Change | undefined>,
  ): Promise<LoadedAgent> {
    const { store } = this.#deps
    const agent = await this.require(id)
    const changed = await change(agent)
    if (!changed) return agent
    const { what, isWhole = false, ...values } = changed
    const row: AgentRow = { ...agent.row, updated_at: new Date().toISOString(), ...values }
    const parsed = values.manifest_toml === undefined ? undefined : parseManifest(row.manifest_toml)
    if (parsed) {
      await this.#checkAddresses(parsed.document, agent.manifest)
      if (values.signed_by === undefined && (await this.#widens(agent, parsed.document))) {
        row.signed_by = null
        row.envelope = null
      }
      if (agent.mode === 'Stable') checkPinned(agent.name, parseManifest(agent.manifestToml).document, parsed.document)
      row.name = parsed.document.name
      if (parsed.document.enabled !== agent.manifest.enabled)
        row.state = parsed.document.enabled ? 'Running' : 'Stopped'
    }
    const conditions = store.shared ? [(await store.sharing()).unlessChanged(agent.row)] : []
    const more = parsed ? await this.#changing(agent, row, parsed, isWhole) : []
    await this.#commit(
      row,
      [...conditions, store.update(row), ...more],
      what === undefined
        ? undefined
        : {
            event: 'agent_updated',
            agentId: row.id,
            details: `agent "${row.name}": ${what}`,
            ...(values.state === undefined ? { change: changeOf(agent.row, row) } : {}),
          },
    )
    const held = this.#deps.registry.put(row, parsed)
    await this.#deps.hooks.emit(AgentChanged, { agent: held })
    return held
  }

  /** What other plugins write together with a changed manifest. */
  async #changing(
    before: LoadedAgent,
    row: AgentRow,
    parsed: ParsedManifest,
    isWhole: boolean,
  ): Promise<readonly Statement[]> {
    const { hooks, registry } = this.#deps
    const agent = registry.read(row, parsed)
    return (await hooks.apply(AgentChanging, { before, agent, statements: [], isWhole })).statements
  }

  /**
   * Whether an edit adds a right to the signed manifest, so that the signature no longer covers it. Under `require` it
   * is refused.
   */
  async #widens({ name, manifest }: LoadedAgent, changed: ManifestDocument): Promise<boolean> {
    const { exceeds } = await import('./inherit.ts')
    const right = exceeds(manifest, changed)
    if (right === undefined) return false
    if (this.#deps.signatures.config.policy !== 'require') return true
    enforced('manifest_signing')
    throw new Refusal(
      'forbidden',
      `manifest_signing.policy is "require": agent "${name}" gets a right only with a signed manifest: ${right}`,
    )
  }

  async #commit(row: AgentRow, statements: readonly Statement[], record: AuditRecord | undefined): Promise<void> {
    const { store, audit } = this.#deps
    try {
      await store.commit(...statements, ...(record ? [audit.entry(record)] : []))
    } catch (error) {
      // The unique index decides, not a lookup before the write: another spawn or another process may pick the same
      // name.
      const holder = await store.findByName(row.name)
      if (!holder || holder.id === row.id) throw error
      throw new Refusal('conflict', `an agent named "${row.name}" exists already`, {
        details: { name: row.name, agent_id: holder.id },
        cause: error,
      })
    }
  }

  /** An address is checked when it is set; when it is used, where its name leads to is checked again. */
  async #checkAddresses(manifest: Manifest, before?: Manifest): Promise<void> {
    const known = before === undefined ? [] : addressesOf(before).map(({ url }) => url)
    for (const { field, url } of addressesOf(manifest)) {
      if (known.includes(url)) continue
      try {
        await this.#deps.admit(url)
      } catch (error) {
        // Only a caller who may change the agent can act on this, so nobody else gets it as an answer.
        if (error instanceof Refusal)
          throw new Refusal('invalid_request', `${field}: ${error.message}`, { cause: error })
        throw error
      }
    }
  }

  #checkSize(manifestToml: string): void {
    const limit = this.#deps.maxManifestBytes
    if (Buffer.byteLength(manifestToml) <= limit) return
    throw new Refusal(
      'payload_too_large',
      `manifest_toml: at most ${limit} bytes (plugins.agents.max_manifest_bytes)`,
      { details: { limit_bytes: limit } },
    )
  }
}

/** A disabled agent does not start. */
const initialState = ({ enabled }: Manifest): AgentState => (enabled ? 'Running' : 'Stopped')

/** What an agent is, before and after. */
function changeOf(before: AgentRow, after: AgentRow): AuditChange {
  const facts = ({ manifest_toml, mode, permission, identity, signed_by }: AgentRow) => ({
    ...parseManifest(manifest_toml).document,
    mode,
    permission,
    identity: readOwnJson(identity),
    signed_by,
  })
  return { before: facts(before), after: facts(after) }
}

/** Where a manifest sends conversations, beside the addresses of its providers. */
function addressesOf({
  model,
  fallback_models,
}: Manifest): readonly { readonly field: string; readonly url: string }[] {
  return [
    ...(model.base_url === undefined ? [] : [{ field: 'model.base_url', url: model.base_url }]),
    ...fallback_models.flatMap(({ base_url: url }, index) =>
      url === undefined ? [] : [{ field: `fallback_models.${index}.base_url`, url }],
    ),
  ]
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
