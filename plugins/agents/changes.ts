import { randomUUID } from 'node:crypto'
import { NIL, v7 } from 'uuid'
import { enforced, isNotHeld, readOwnJson } from 'svc/internal'
import { KeyedQueue, Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { AuditChange, AuditRecord } from '../audit/contract.ts'
import { AgentChanged, AgentChanging, AgentKilled, AgentKilling, AgentSpawned, AgentSpawning } from './contract.ts'
import type { Agent, AgentState, Manifest, ModelChoice } from './contract.ts'
import type { CloneOptions } from './clone.ts'
import type { IdentityChange } from './identity.ts'
import { checkManifestSize, editManifest, parseManifest } from './manifest.ts'
import type { ManifestEdits, ParsedManifest } from './manifest.ts'
import type { ManifestDocument } from './manifest-schema.ts'
import { checkPinned, pinOf } from './pin.ts'
import type { LoadedAgent } from './registry.ts'
import type { AgentRow } from './schema.ts'
import type { AgentService, AgentServiceDeps, SpawnOptions } from './service.ts'
import { SHIPPED } from './signing.ts'
import type { Opened } from './signing.ts'
import { path } from './state.ts'
import type { Command } from './state.ts'

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

/** Every change to the registered agents. A change and its audit entry are on disk before it is announced. */
export class AgentChanges {
  readonly #deps: AgentServiceDeps
  readonly #agents: Pick<AgentService, 'find' | 'findByName' | 'require' | 'modelOf'>
  /** Changes of one agent follow each other, so that none is lost between its read and its write. */
  readonly #queue = new KeyedQueue()

  constructor(deps: AgentServiceDeps, agents: Pick<AgentService, 'find' | 'findByName' | 'require' | 'modelOf'>) {
    this.#deps = deps
    this.#agents = agents
  }

  async spawn(manifestToml: string, options: SpawnOptions): Promise<LoadedAgent> {
    checkManifestSize(manifestToml, this.#deps.maxManifestBytes)
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

  async clone(id: string, options: CloneOptions): Promise<LoadedAgent> {
    const agent = await this.#agents.require(id)
    const { cloneManifest, cloneName } = await import('./clone.ts')
    const name =
      options.name ??
      (await cloneName(agent.name, async (candidate) => (await this.#agents.findByName(candidate)) !== undefined))
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

  async finish(unfinished: readonly string[]): Promise<void> {
    for (const id of unfinished)
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
    const row: AgentRow = { ...newRow(parsed), ...more }
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
      const agent = await this.#agents.find(id)
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

  async activate(id: string, sessionId: string): Promise<void> {
    // The plugin that owns the sessions records a move between them.
    await this.#change(id, (agent) => (agent.sessionId === sessionId ? undefined : { session_id: sessionId }))
  }

  async setModel(
    id: string,
    requested: string,
    provider?: string,
  ): Promise<ModelChoice & { readonly warnings: readonly string[] }> {
    const agent = await this.#agents.require(id)
    const chosen = await this.#agents.modelOf(agent, requested, provider)
    const changed = await this.edit(id, { 'model.model': chosen.model, 'model.provider': chosen.provider })
    const [names, warnings] = await Promise.all([
      this.#deps.names(),
      this.#deps.modelWarnings({ ...changed.manifest, fallback_models: [] }),
    ])
    return { ...names(changed.manifest.model), warnings: [...warnings, ...leftBehind(agent, changed)] }
  }

  async replace(id: string, { toml, signedBy, envelope }: Opened): Promise<LoadedAgent> {
    checkManifestSize(toml, this.#deps.maxManifestBytes)
    this.#deps.signatures.admit(signedBy)
    const { checkNewer } = await import('./open-signed.ts')
    const change = (agent: LoadedAgent): Change => {
      checkNewer(agent, parseManifest(toml).document.version, signedBy)
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
   * The agent that a manifest would make, or make of this one. Throws what would refuse it, but for a missing signature,
   * and writes nothing.
   */
  async check({ toml, signedBy, envelope }: Opened, id?: string): Promise<LoadedAgent> {
    checkManifestSize(toml, this.#deps.maxManifestBytes)
    const { hooks, registry } = this.#deps
    const before = id === undefined ? undefined : await this.#agents.require(id)
    const parsed = parseManifest(toml)
    await this.#checkAddresses(parsed.document, before?.manifest)
    if (before) (await import('./open-signed.ts')).checkNewer(before, parsed.document.version, signedBy)
    if (before?.mode === 'Stable')
      checkPinned(before.name, parseManifest(before.manifestToml).document, parsed.document)
    const { name } = parsed.document
    const known = before?.row ?? { ...newRow(parsed), id: NIL }
    const row = { ...known, name, manifest_toml: toml, signed_by: signedBy, envelope }
    const holder = await this.#agents.findByName(name)
    if (holder && holder.id !== row.id) throw nameTaken(holder)
    if (before) await this.#changing(before, row, parsed, true)
    else await hooks.apply(AgentSpawning, { agent: registry.read(row, parsed), statements: [] })
    return registry.read(row, parsed)
  }

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
    const agent = await this.#agents.require(id)
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
      throw nameTaken(holder, error)
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
}

function newRow({ toml, document }: ParsedManifest): AgentRow {
  const now = new Date().toISOString()
  return {
    // In the order of creation, also within a millisecond: lists are sorted by it.
    id: v7(),
    name: document.name,
    manifest_toml: toml,
    state: initialState(document),
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
  }
}
const nameTaken = ({ id, name }: Pick<AgentRow, 'id' | 'name'>, cause?: unknown): Refusal =>
  new Refusal('conflict', `an agent named "${name}" exists already`, { details: { name, agent_id: id }, cause })

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
