import { join } from 'node:path'
import { bundledHands } from 'svc/internal'
import type { Daemon, DatabaseSnapshots, TellChange } from 'svc/internal'
import type { Counter, PluginContext } from 'svc/sdk'
import type * as v from 'valibot'
import type { Agent, Agents, Family } from '../agents/contract.ts'
import type { Approvals } from '../approvals/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { KeyValue } from '../kv/contract.ts'
import type { McpServers } from '../mcp/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Wakeups } from '../schedules/contract.ts'
import type { Skills } from '../skills/contract.ts'
import { HandCatalog } from './catalog.ts'
import type { Settings } from './config.ts'
import { definitionOf, DefinitionProblem, requireDefinition } from './definition.ts'
import type { Definition } from './definition.ts'
import { installPrograms } from './dependencies.ts'
import { Instances } from './instances.ts'
import { openInstaller } from './install/open.ts'
import type { OpenedInstaller } from './install/open.ts'
import { Members } from './members.ts'
import { isMet, Present } from './requirements.ts'
import type { InstallHand } from './schema.ts'
import { InstanceSecrets } from './secrets.ts'
import { describeValues, withDefaults } from './settings.ts'
import { InstanceStore, MemberStore } from './store.ts'
import { HandToolCalls } from './tool-calls.ts'
import { HandViews } from './views.ts'

interface Optional {
  readonly approvals: Approvals
  readonly inference: Inference
  readonly mcp: McpServers
  readonly skills: Skills
}
export type RuntimeDeps = Pick<
  PluginContext<Settings, {}, {}>,
  'config' | 'db' | 'hooks' | 'log' | 'own' | 'run' | 'spawn' | 'tools' | 'vault'
> & {
  readonly services: {
    readonly agents: Agents
    readonly audit: Audit
    readonly daemon: Daemon
    readonly family: Family
    readonly kv: KeyValue
    readonly snapshots: DatabaseSnapshots
    readonly wakeups: Wakeups
  }
  optional<K extends keyof Optional>(name: K): Optional[K] | undefined
}
export interface Counters {
  readonly changes: Counter
  readonly runs: Counter
}
interface BuiltPrompt {
  readonly agent: Agent
  readonly text: string
}

/** All that works on hands, once somebody asks. */
export class Runtime {
  readonly instances: Instances
  readonly views: HandViews
  readonly toolCalls: HandToolCalls
  readonly #ctx: RuntimeDeps
  readonly #catalog: HandCatalog
  readonly #store: InstanceStore
  readonly #members: Members
  readonly #secrets: InstanceSecrets
  readonly #tell: TellChange
  #installing: Promise<OpenedInstaller> | undefined

  /** `tell`: tells other daemons which hand was installed or removed. */
  constructor(ctx: RuntimeDeps, counters: Counters, tell: TellChange) {
    const { config: settings, db, hooks, log, run, services, vault } = ctx
    this.#ctx = ctx
    this.#tell = tell
    this.#store = new InstanceStore(db, log)
    this.#secrets = new InstanceSecrets(vault)
    this.#catalog = new HandCatalog({ bundled: bundledHands(), local: join(services.daemon.config().homeDir, 'hands') })
    const catalog = this.#catalog
    const present = () => this.#present()
    this.#members = new Members({ ...services, hooks, members: new MemberStore(db) })
    this.instances = new Instances({
      ...services,
      members: this.#members,
      store: this.#store,
      secrets: this.#secrets,
      catalog,
      log,
      hooks,
      settings,
      requirements: (definition) => this.#requirements(definition),
      background(work) {
        run(work).catch((error: unknown) => log.error('listeners were not told of a hand', error))
      },
      counted: (change) => counters.changes.add(1, { change }),
      ranOnce: (hand, outcome) => counters.runs.add(1, { hand, outcome }),
    })
    this.views = new HandViews({
      ...services,
      catalog,
      instances: this.instances,
      members: this.#members,
      secrets: this.#secrets,
      present,
      hooks,
      intervalSecs: settings.interval_secs,
    })
    this.toolCalls = new HandToolCalls(this.instances, this.views, services.family)
  }

  async install(body: v.InferOutput<typeof InstallHand>) {
    return (await this.#openInstaller()).installer.install(body)
  }
  async remove(handId: string): Promise<void> {
    await (await this.#openInstaller()).installer.remove(handId)
  }
  /** Makes the installed hands of this home what the database says, and ends what a stop of the daemon left. */
  async follow(): Promise<void> {
    await this.#members.sweep()
    await (await this.#openInstaller()).follow()
  }
  /** The instance that an activation with this id has made. */
  async recall(id: string) {
    const made = await this.instances.find(id)
    return made && this.views.instance(made)
  }
  async installDependencies(handId: string, signal: AbortSignal) {
    const { config: settings, services, spawn } = this.#ctx
    const { definition } = await this.#catalog.require(handId)
    const deps = { spawn, audit: services.audit, settings, approvals: () => this.#ctx.optional('approvals') }
    const results = await installPrograms(deps, { id: handId }, await this.#requirements(definition), signal)
    const now = await this.#requirements(definition)
    return {
      hand_id: handId,
      results: results.map((result) => ({ ...result })),
      requirements_met: isMet(now),
      requirements: now.map((one) => ({ ...one })),
    }
  }
  async settings(handId: string, reference: string | undefined) {
    const isActive = reference !== undefined || (await this.instances.list(handId)).length > 0
    const instance = isActive ? await this.instances.choose(handId, reference) : undefined
    const definition = instance ? requireDefinition(instance) : (await this.#catalog.require(handId)).definition
    return {
      hand_id: handId,
      settings: await this.views.settings(definition),
      current_values: instance
        ? withDefaults(definition, instance.settings, await this.#secrets.stored(instance.id, definition))
        : withDefaults(definition, {}, new Set()),
    }
  }
  /** What the operator chose, after the prompt of the agent of an instance. */
  async addSettings(built: BuiltPrompt): Promise<BuiltPrompt> {
    const instance = await this.#store.ofAgent(built.agent.id)
    if (!instance) return built
    const definition = definitionOf(instance)
    if (definition instanceof DefinitionProblem) return built
    const stored = await this.#secrets.stored(instance.id, definition)
    const text = describeValues(definition, instance.settings, stored)
    return text ? { ...built, text: `${built.text.trimEnd()}\n\n${text}` } : built
  }

  /** Secrets of the instance that an agent is of, by the name of their variable. */
  async variables(agentId: string): Promise<Readonly<Record<string, string>>> {
    const instance = await this.#store.ofAgent(agentId)
    return instance ? this.#secrets.variables(instance.id, requireDefinition(instance)) : {}
  }

  #openInstaller(): Promise<OpenedInstaller> {
    const count = async (handId: string): Promise<number> => (await this.instances.list(handId)).length
    return (this.#installing ??= openInstaller(this.#ctx, this.#catalog, count, this.#tell))
  }
  #present(): Promise<Present> {
    const { spawn, tools } = this.#ctx
    return Present.look({
      spawn,
      tools,
      inference: () => this.#ctx.optional('inference'),
      mcp: () => this.#ctx.optional('mcp'),
      skills: () => this.#ctx.optional('skills'),
    })
  }
  async #requirements(definition: Definition) {
    return (await this.#present()).check(definition)
  }
}
