import { newId } from 'svc/internal'
import { commandLine, KeyedQueue, omitUndefined, Refusal } from 'svc/sdk'
import type { Hooks, Logger, Statement } from 'svc/sdk'
import type { Agent, Agents, Family, Spawning } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Wakeups, WakeupState } from '../schedules/contract.ts'
import type { Hand, HandCatalog } from './catalog.ts'
import type { Settings } from './config.ts'
import { HandChanged } from './contract.ts'
import { definitionOf, DefinitionProblem, requireDefinition } from './definition.ts'
import type { Definition } from './definition.ts'
import { coordinatorOf, DEFAULT_NAME, manifestOf, promptOf } from './manifest.ts'
import type { Members } from './members.ts'
import { isMet } from './requirements.ts'
import type { RequirementState } from './requirements.ts'
import type { Values } from './schema.ts'
import type { InstanceSecrets } from './secrets.ts'
import { checkValues, wakeupOf } from './settings.ts'
import type { Instance, InstanceStore } from './store.ts'

/** Characters of the reason of a failure in the audit log. */
const MAX_DETAILS = 1000

export interface InstancesDeps {
  readonly store: InstanceStore
  readonly catalog: Pick<HandCatalog, 'require'>
  readonly agents: Agents
  readonly family: Family
  readonly audit: Audit
  readonly wakeups: Wakeups
  readonly secrets: InstanceSecrets
  readonly members: Members
  readonly log: Pick<Logger, 'warn'>
  readonly hooks: Pick<Hooks, 'emit'>
  readonly settings: Settings
  readonly requirements: (definition: Definition) => Promise<readonly RequirementState[]>
  readonly background: (work: () => Promise<void>) => void
  readonly counted: (change: string) => void
  readonly ranOnce: (handId: string, outcome: string) => void
}
/** The agent that activates a hand by a tool. */
export interface Activator {
  readonly agentId: string
  readonly onBehalf?: readonly string[] | undefined
  readonly labels?: readonly string[] | undefined
}
interface Plan {
  readonly hand: Hand
  readonly id: string
  readonly name: string
  readonly settings: Values
  readonly by: Activator | undefined
}
type Change = 'activated' | 'paused' | 'resumed' | 'settings' | 'failed' | 'deactivated'

/** The instances of hands. Agent, schedule and row of one are made together, and go together. */
export class Instances {
  readonly #deps: InstancesDeps
  /** Activations of this process whose agent is being made, by the id of the instance. */
  readonly #plans = new Map<string, Plan>()
  readonly #queue = new KeyedQueue()
  constructor(deps: InstancesDeps) {
    this.#deps = deps
  }

  /**
   * Throws `not_found`, `invalid_request` for what is missing, a wrong setting and a second instance of the same name,
   * `conflict` when the name of its agent is taken, `rate_limit` when there are too many, and `forbidden` when the agent
   * that asks lacks a right of the hand.
   */
  async activate(
    handId: string,
    asked: {
      readonly config?: Values | undefined
      readonly name?: string | undefined
      readonly id?: string | undefined
      readonly by?: Activator | undefined
    } = {},
  ): Promise<Instance> {
    const { agents, catalog, family, members, requirements, wakeups } = this.#deps
    const { config = {}, name = DEFAULT_NAME, id = newId(), by } = asked
    const hand = await catalog.require(handId)
    const { definition } = hand
    const { values: settings, secrets } = checkValues(definition, config)
    const [secret] = Object.keys(secrets)
    if (by !== undefined && secret !== undefined)
      throw new Refusal(
        'invalid_request',
        `config.${secret}: a person sets a secret, at PUT /api/hands/${handId}/settings once the hand is active`,
      )
    const states = await requirements(definition)
    if (!isMet(states)) throw lacking(handId, states)
    await this.#checkName(handId, name)
    await members.check(definition, name)
    const part = coordinatorOf(hand, name)
    const toml = manifestOf(definition, { id, name }, part, await members.base(part))
    await this.#deps.secrets.write(id, secrets)
    this.#plans.set(id, { hand, id, name, settings, by })
    try {
      const source = { isShipped: hand.origin === 'bundled' }
      const { agentId: maker, ...author } = by ?? {}
      await (maker === undefined
        ? agents.spawn(toml, source)
        : family.spawn(maker, toml, { ...source, ...omitUndefined(author) }))
    } catch (error) {
      if (secret !== undefined && !(await this.find(id))) await this.#deps.secrets.clear(id)
      await this.#explain(handId, name, error)
      throw error
    } finally {
      this.#plans.delete(id)
    }
    const made = await this.require(id)
    try {
      await members.complete(made, definition, by?.agentId)
    } catch (error) {
      // Half a hand would be woken.
      await this.deactivate(id)
      throw error
    }
    await wakeups.begin()
    return made
  }

  /** For the batch that makes an agent: the instance and its schedule, when it is the agent of one. */
  async addTo(spawning: Spawning): Promise<Spawning> {
    const { agent, statements } = spawning
    // What a manifest says of itself is no proof: a clone says the same.
    if (agent.manifest.metadata['hand_role'] !== undefined) {
      const member = this.#deps.members.statements(agent)
      if (member.length > 0) return { ...spawning, statements: [...statements, ...member] }
    }
    const plan = this.#plans.get(String(agent.manifest.metadata['hand_instance']))
    if (!plan) return spawning
    const { audit, settings: limits, store, wakeups } = this.#deps
    const { hand, id, name, settings, by } = plan
    const scheduleId = newId()
    const now = new Date().toISOString()
    const instance: Instance = {
      id,
      handId: hand.id,
      name,
      agentId: agent.id,
      scheduleId,
      settings,
      definition: hand.toml,
      version: 1,
      activatedAt: now,
      updatedAt: now,
    }
    const wakeup = await wakeups.prepare({
      id: scheduleId,
      name: `hand ${hand.id} ${name}`,
      agent,
      when: wakeupOf(hand.definition, settings, limits.interval_secs),
      prompt: promptOf(hand.definition),
      onBehalf: by && [...new Set([...(by.onBehalf ?? []), by.agentId])],
      labels: by?.labels,
    })
    const inserted = store.insert(instance, limits.max_instances)
    return {
      ...spawning,
      statements: [
        ...statements,
        { ...inserted, written: () => this.#tell('activated', instance) },
        audit.entry({ event: 'hand_changed', agentId: agent.id, details: `hand "${hand.id}" activated as "${name}"` }),
        ...wakeup,
      ],
    }
  }

  /** For the batch that removes an agent: its instance goes with it. */
  async endWith(killing: { readonly agent: Agent; readonly statements: readonly Statement[] }) {
    const { agent, statements } = killing
    const instance = await this.#deps.store.ofAgent(agent.id)
    if (!instance) {
      const member = await this.#deps.members.endWith(agent)
      return member.length === 0 ? killing : { agent, statements: [...statements, ...member] }
    }
    const details = `hand "${instance.handId}", instance "${instance.name}", deactivated`
    return {
      agent,
      statements: [
        ...statements,
        {
          ...this.#deps.store.remove(agent.id),
          written: (changes: number) => {
            if (changes === 0) return
            this.#deps.background(() => this.#deps.secrets.clear(instance.id))
            this.#deps.background(() => this.#deps.members.end(instance.id))
            this.#tell('deactivated', instance)
          },
        },
        this.#deps.audit.entry({ event: 'hand_changed', agentId: agent.id, details }),
      ],
    }
  }

  /** A slot of a schedule has ended. */
  async ran(slot: { readonly jobId: string; readonly state: string; readonly error: string | null }): Promise<void> {
    const instance = await this.#deps.store.ofSchedule(slot.jobId)
    if (!instance) return
    this.#deps.ranOnce(instance.handId, slot.state)
    if (slot.state !== 'failed') return
    const why = slot.error ?? 'no reason was given'
    const { audit, log } = this.#deps
    const details = `hand "${instance.handId}", instance "${instance.name}": a run failed: ${why}`
    log.warn(details)
    await audit.write({ event: 'hand_changed', agentId: instance.agentId, details: details.slice(0, MAX_DETAILS) })
    this.#tell('failed', instance, slot.error)
  }

  find(id: string): Promise<Instance | undefined> {
    return this.#deps.store.find(id)
  }
  list(handId?: string): Promise<readonly Instance[]> {
    return this.#deps.store.list(handId)
  }
  /** Throws `not_found`. */
  async require(id: string): Promise<Instance> {
    const found = await this.find(id)
    if (found) return found
    throw new Refusal('not_found', `There is no instance ${id}`)
  }
  /**
   * An instance of a hand by its name or id; without one, the only one or the one without a name of its own. Throws
   * `not_found`, and `invalid_request` when it could be several.
   */
  async choose(handId: string, reference: string | undefined): Promise<Instance> {
    const all = await this.list(handId)
    const found =
      reference === undefined
        ? all.length === 1
          ? all[0]
          : all.find(({ name }) => name === DEFAULT_NAME)
        : all.find(({ id, name }) => id === reference.toLowerCase() || name === reference)
    if (found) return found
    const names = all.map(({ name }) => name).join(', ')
    if (all.length > 1 && reference === undefined)
      throw new Refusal('invalid_request', `instance: the hand "${handId}" has several, name one of: ${names}`)
    const there = all.length === 0 ? 'no active instance' : `no instance "${reference}"; there is ${names}`
    throw new Refusal('not_found', `The hand "${handId}" has ${there}`)
  }

  /** `Active`, `Paused`, or `Error: ` and why. */
  async status(instance: Instance): Promise<{ readonly status: string; readonly wakeup: WakeupState | undefined }> {
    const [wakeup, agent] = await Promise.all([
      this.#deps.wakeups.find(instance.scheduleId),
      this.#deps.agents.find(instance.agentId),
    ])
    const definition = definitionOf(instance)
    if (definition instanceof DefinitionProblem)
      return { status: `Error: its definition cannot be used: ${definition.message}`, wakeup }
    const [missing] = await this.#deps.members.missing(instance, definition)
    const status = statusOf(wakeup, agent)
    if (missing !== undefined && status === 'Active')
      return { status: `Error: the agent of its role "${missing}" is gone; resume makes it anew`, wakeup }
    return { status, wakeup }
  }

  /** Throws `invalid_request` for an unknown one and for one that is paused. */
  pause(id: string): Promise<void> {
    return this.#wake(id, false)
  }
  /** Throws `invalid_request` for an unknown one and for one that is not paused. */
  resume(id: string): Promise<void> {
    return this.#wake(id, true)
  }
  #wake(id: string, enabled: boolean): Promise<void> {
    return this.#queue.run(id, async () => {
      const { audit, wakeups } = this.#deps
      const instance = await this.#known(id)
      const wakeup = await wakeups.find(instance.scheduleId)
      if (!wakeup)
        throw new Refusal('invalid_request', 'Its schedule was removed: deactivate the instance and activate it anew')
      const isMended = enabled && (await this.#mend(instance))
      if (isMended && wakeup.enabled) return
      if (wakeup.enabled === enabled)
        throw new Refusal('invalid_request', `This instance is ${enabled ? 'not paused' : 'paused already'}`)
      await wakeups.change(instance.scheduleId, { enabled })
      const change = enabled ? 'resumed' : 'paused'
      await audit.write({
        event: 'hand_changed',
        agentId: instance.agentId,
        details: `hand "${instance.handId}", instance "${instance.name}", ${change}`,
      })
      this.#tell(change, instance)
    })
  }

  /** Makes the agents of its roles that are gone; whether there were any. */
  async #mend(instance: Instance): Promise<boolean> {
    const { agents, family, members } = this.#deps
    const definition = definitionOf(instance)
    if (definition instanceof DefinitionProblem || (await members.missing(instance, definition)).length === 0)
      return false
    const coordinator = await agents.require(instance.agentId)
    await members.complete(instance, definition, family.parentOf(coordinator))
    return true
  }

  /** With its agents. Throws `invalid_request` for an unknown one. `by`: an agent, which ends those it made only. */
  async deactivate(id: string, by?: string): Promise<void> {
    const { agents, family, members, store } = this.#deps
    const { agentId } = await this.#known(id)
    // Not its own either, where it may not end the coordinator.
    if (by !== undefined) await family.kill(by, agentId)
    await members.end(id)
    if (by === undefined && (await agents.kill(agentId)) === undefined) await store.commit([store.remove(agentId)])
  }

  /** Values that are left out stay. Throws `not_found`, `invalid_request`, and `conflict` when two change it at once. */
  async configure(handId: string, reference: string | undefined, values: Values): Promise<Instance> {
    const { id } = await this.choose(handId, reference)
    return this.#queue.run(id, async () => {
      const { audit, settings: limits, store, wakeups } = this.#deps
      const instance = await this.require(id)
      const definition = requireDefinition(instance)
      const { values: changed, secrets } = checkValues(definition, values)
      const settings = { ...instance.settings, ...changed }
      const when = (all: Values) => wakeupOf(definition, all, limits.interval_secs)
      const next = when(settings)
      // First: a time that cannot be is refused before anything is written.
      if (JSON.stringify(next) !== JSON.stringify(when(instance.settings)))
        await wakeups.change(instance.scheduleId, { when: next })
      const details = `hand "${handId}", instance "${instance.name}": settings ${Object.keys(values).join(', ')} changed`
      try {
        await store.commit([
          store.update({ ...instance, settings }, new Date().toISOString()),
          audit.entry({ event: 'hand_changed', agentId: instance.agentId, details }),
        ])
      } catch (cause) {
        if ((await this.find(id))?.version === instance.version) throw cause
        throw new Refusal('conflict', 'The settings changed at the same moment; read them again and repeat', { cause })
      }
      await this.#deps.secrets.write(id, secrets)
      this.#tell('settings', instance)
      return this.require(id)
    })
  }

  async #known(id: string): Promise<Instance> {
    const found = await this.find(id)
    if (found) return found
    throw new Refusal('invalid_request', `There is no instance ${id}`)
  }
  async #checkName(handId: string, name: string): Promise<void> {
    const others = await this.list(handId)
    if (!others.some((other) => other.name === name)) return
    throw new Refusal(
      'invalid_request',
      `The hand "${handId}" is active as "${name}" already; give another instance_name, or --name`,
    )
  }
  /** Why the batch failed, where it is one of the limits, or another daemon was faster. */
  async #explain(handId: string, name: string, error: unknown): Promise<void> {
    if (error instanceof Refusal && error.code !== 'service_unavailable') return
    await this.#checkName(handId, name)
    const max = this.#deps.settings.max_instances
    if ((await this.list()).length >= max)
      throw new Refusal('rate_limit', `There are ${max} instances, which is all plugins.hands.max_instances allows`)
    await this.#deps.wakeups.checkRoom()
  }

  #tell(change: Change, { id, handId, agentId }: Instance, error: string | null = null): void {
    this.#deps.counted(change)
    this.#deps.background(() => this.#deps.hooks.emit(HandChanged, { change, instanceId: id, handId, agentId, error }))
  }
}

function statusOf(wakeup: WakeupState | undefined, agent: Agent | undefined): string {
  if (!agent) return 'Error: its agent is gone'
  if (!wakeup) return 'Error: its schedule was removed; deactivate it and activate it anew'
  if (!wakeup.enabled && (wakeup.reason === null || wakeup.reason === 'disabled by hand')) return 'Paused'
  if (!wakeup.enabled) return `Error: ${wakeup.reason}${wakeup.lastError === null ? '' : `: ${wakeup.lastError}`}`
  if (agent.state !== 'Running') return `Error: its agent is ${agent.state}`
  return wakeup.lastError === null ? 'Active' : `Error: ${wakeup.lastError}`
}

function lacking(handId: string, states: readonly RequirementState[]): Refusal {
  const missing = states.filter(({ satisfied, optional }) => !satisfied && !optional)
  return new Refusal(
    'invalid_request',
    `The hand "${handId}" lacks: ${missing.map(({ label }) => label).join('; ')}. ${commandLine(`hand check ${handId}`)} says more`,
    { details: { missing: missing.map(({ key }) => key) } },
  )
}
