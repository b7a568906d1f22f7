import { omitUndefined } from 'svc/sdk'
import type { Hooks } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { KeyValue } from '../kv/contract.ts'
import type { BadHand, Hand, HandCatalog } from './catalog.ts'
import { BrowserAsked } from './contract.ts'
import { definitionOf, DefinitionProblem, ignoredKeys } from './definition.ts'
import type { Definition, Metric } from './definition.ts'
import type { Instances } from './instances.ts'
import type { Members } from './members.ts'
import { isMet, platform } from './requirements.ts'
import type { Present, RequirementState } from './requirements.ts'
import type { Instance } from './store.ts'
import type { InstanceSecrets } from './secrets.ts'
import { isSecret, missingSettings, wakeupOf, withDefaults } from './settings.ts'

/** The role of the agent of a hand that has one only. */
const MAIN = 'main'
const MAX_TEXT = 500
const MAX_CONTENT = 2000

export interface ViewsDeps {
  readonly catalog: HandCatalog
  readonly instances: Instances
  readonly members: Pick<Members, 'of'>
  readonly secrets: Pick<InstanceSecrets, 'stored'>
  readonly present: () => Promise<Present>
  readonly agents: Pick<Agents, 'find'>
  readonly kv: Pick<KeyValue, 'find'>
  /** Of a hand that names no time. */
  readonly intervalSecs: number
  readonly hooks: Pick<Hooks, 'apply'>
}

/** What is shown of hands and their instances. */
export class HandViews {
  readonly #deps: ViewsDeps
  constructor(deps: ViewsDeps) {
    this.#deps = deps
  }

  async list() {
    const [{ hands, bad }, present, instances] = await Promise.all([
      this.#deps.catalog.list(),
      this.#deps.present(),
      this.#deps.instances.list(),
    ])
    const active = new Set(instances.map(({ handId }) => handId))
    return {
      hands: hands.map((hand) => toRow(hand, present.check(hand.definition), active.has(hand.id))),
      total: hands.length,
      problems: bad.map(toProblem),
    }
  }
  async detail(handId: string) {
    const { hand, requirements, isActive } = await this.#look(handId)
    const { agent, dashboard, mcp_servers, metadata, skills, version, capabilities } = hand.definition
    const ignored = ignoredKeys(hand.toml)
    return {
      ...toRow(hand, requirements, isActive),
      requirements: requirements.map((one) => ({ ...one })),
      server_platform: platform(),
      version,
      path: hand.path,
      skills: [...skills],
      mcp_servers: [...mcp_servers],
      capabilities: { ...capabilities },
      agent: {
        name: agent.name,
        description: agent.description,
        provider: agent.provider,
        model: agent.model,
        system_prompt: agent.system_prompt,
        ...omitUndefined({ base_url: agent.base_url, api_key_env: agent.api_key_env }),
      },
      roles: hand.definition.helpers.length === 0 ? [] : rolesOf(hand.definition),
      wakes: wakeupOf(hand.definition, {}, this.#deps.intervalSecs),
      dashboard: dashboard.metrics.map((metric) => ({ ...metric })),
      settings: await this.settings(hand.definition),
      metadata: { ...metadata },
      ignored_keys: ignored.map(({ path }) => path),
      nearest_keys: Object.fromEntries(
        ignored.flatMap(({ path, nearest }) => (nearest === undefined ? [] : [[path, nearest]])),
      ),
    }
  }
  async dependencies(handId: string) {
    const { requirements, isActive } = await this.#look(handId)
    return {
      hand_id: handId,
      requirements_met: isMet(requirements),
      active: isActive,
      degraded: isActive && requirements.some(({ satisfied }) => !satisfied),
      server_platform: platform(),
      requirements: requirements.map((one) => ({ ...one })),
    }
  }
  /** The settings of a definition, and which of their options can be used here. */
  async settings({ settings }: Definition) {
    const present = await this.#deps.present()
    return settings.map((setting) => ({
      ...setting,
      secret: isSecret(setting),
      options: setting.options.map(({ value, label, provider_env: variable, binary }) => ({
        value,
        label: label ?? value,
        available: (variable === undefined || present.variable(variable)) && (!binary || present.program(binary)),
      })),
    }))
  }

  async instance(instance: Instance, present?: Present) {
    const [there, { status, wakeup }, agent] = await Promise.all([
      present ?? this.#deps.present(),
      this.#deps.instances.status(instance),
      this.#deps.agents.find(instance.agentId),
    ])
    const definition = definitionOf(instance)
    const isUsable = !(definition instanceof DefinitionProblem)
    const stored = isUsable ? await this.#deps.secrets.stored(instance.id, definition) : new Set<string>()
    const config = isUsable ? withDefaults(definition, instance.settings, stored) : instance.settings
    const lacks = isUsable
      ? [
          ...missingSettings(definition, instance.settings, stored).map(
            ({ key, label }) => `the setting "${key}" (${label})`,
          ),
          ...there.check(definition).flatMap(({ satisfied, label }) => (satisfied ? [] : [label])),
        ]
      : []
    return {
      instance_id: instance.id,
      hand_id: instance.handId,
      instance_name: instance.name,
      status,
      agent_id: instance.agentId,
      agent_name: agent?.name ?? '',
      agents: [
        {
          role: (isUsable ? definition.role : undefined) ?? MAIN,
          agent_id: instance.agentId,
          agent_name: agent?.name ?? '',
          coordinator: true,
        },
        ...(await this.#helpers(instance, definition)),
      ],
      config,
      lacks,
      activated_at: instance.activatedAt,
      updated_at: instance.updatedAt,
      schedule_id: instance.scheduleId,
      next_run: wakeup?.nextRun ?? null,
      last_run: wakeup?.lastRun ?? null,
    }
  }
  /** In the order of the definition. */
  async #helpers({ id }: Instance, definition: Definition | DefinitionProblem) {
    if (!(definition instanceof DefinitionProblem) && definition.helpers.length === 0) return []
    const roles = definition instanceof DefinitionProblem ? [] : definition.helpers.map(({ role }) => role)
    const members = (await this.#deps.members.of(id)).toSorted(
      (one, other) => roles.indexOf(one.role) - roles.indexOf(other.role),
    )
    return Promise.all(
      members.map(async ({ agentId, role }) => ({
        role,
        agent_id: agentId,
        agent_name: (await this.#deps.agents.find(agentId))?.name ?? '',
        coordinator: false,
      })),
    )
  }
  async instances(handId?: string) {
    const all = await this.#deps.instances.list(handId)
    const present = all.length === 0 ? undefined : await this.#deps.present()
    const instances = await Promise.all(all.map((instance) => this.instance(instance, present)))
    return { instances, total: instances.length }
  }
  /** The figures of the dashboard, as the agent recorded them in its memory. */
  async stats(id: string) {
    const instance = await this.#deps.instances.require(id)
    const definition = definitionOf(instance)
    const metrics = definition instanceof DefinitionProblem ? [] : definition.dashboard.metrics
    const values = await Promise.all(
      metrics.map(async (metric) => {
        const found = await this.#deps.kv.find(instance.agentId, metric.memory_key)
        return [metric.label, { value: toValue(metric, found?.value), format: metric.format }] as const
      }),
    )
    const { status, wakeup } = await this.#deps.instances.status(instance)
    return {
      instance_id: id,
      hand_id: instance.handId,
      status,
      agent_id: instance.agentId,
      last_run: wakeup?.lastRun ?? null,
      next_run: wakeup?.nextRun ?? null,
      metrics: Object.fromEntries(values),
    }
  }
  async browser(id: string) {
    const { agentId } = await this.#deps.instances.require(id)
    const { state } = await this.#deps.hooks.apply(BrowserAsked, { agentId, state: undefined })
    if (!state) return { active: false }
    return { active: true, ...state, content: state.content.slice(0, MAX_CONTENT) }
  }

  /** For a chat: every hand, or one with its instances. */
  async text(argument: string): Promise<string> {
    const id = argument.trim()
    const { instances } = await this.instances(id === '' ? undefined : id)
    const lines = instances.map(
      ({ hand_id: hand, instance_name: name, status, lacks, next_run: next }) =>
        `- ${hand} (${name}): ${status}${next === null ? '' : `, next run ${next}`}` +
        (lacks.length === 0 ? '' : `, lacks ${lacks.join('; ')}`),
    )
    if (id !== '') {
      const { hand, requirements } = await this.#look(id)
      const lacks = requirements.filter(({ satisfied }) => !satisfied).map(({ label }) => label)
      const { name, description } = hand.definition
      return [
        `**${name}** (${id}): ${description}`,
        ...(lacks.length === 0 ? [] : [`It lacks: ${lacks.join('; ')}`]),
        ...(lines.length === 0 ? ['It is not active.'] : lines),
      ].join('\n')
    }
    const { hands } = await this.list()
    const rest = hands.filter(({ active }) => !active).map((hand) => hand.id)
    const active = lines.length === 0 ? 'No hand is active.' : `Active hands:\n${lines.join('\n')}`
    return rest.length === 0 ? active : `${active}\nOthers: ${rest.join(', ')}`
  }

  async #look(handId: string) {
    const hand = await this.#deps.catalog.require(handId)
    const [present, instances] = await Promise.all([this.#deps.present(), this.#deps.instances.list(handId)])
    return { hand, requirements: present.check(hand.definition), isActive: instances.length > 0 }
  }
}

function toRow({ definition, origin }: Hand, requirements: readonly RequirementState[], active: boolean) {
  const { id, name, description, category, icon, tools, settings, dashboard } = definition
  return {
    id,
    name,
    description,
    category,
    icon,
    tools: [...tools],
    requirements_met: isMet(requirements),
    active,
    degraded: active && requirements.some(({ satisfied }) => !satisfied),
    requirements: requirements.map(({ key, label, satisfied, optional }) => ({ key, label, satisfied, optional })),
    dashboard_metrics: dashboard.metrics.length,
    has_settings: settings.length > 0,
    settings_count: settings.length,
    source: origin,
  }
}
const rolesOf = ({ role, agent, helpers, tools }: Definition) => [
  { role: role ?? MAIN, coordinator: true, description: agent.description, tools: [...tools] },
  ...helpers.map((one) => ({ role: one.role, coordinator: false, description: one.hint, tools: [...one.tools] })),
]
function toProblem({ id, path, problem: { line, key, message } }: BadHand) {
  return { name: id, path, line: line ?? null, key: key ?? null, error: message }
}

/** A number for all formats but text, which an agent may have written as digits. Anything else is no value. */
function toValue({ format }: Metric, found: unknown): number | string | null {
  if (found === undefined || found === null) return null
  if (format === 'text') return (typeof found === 'string' ? found : JSON.stringify(found)).slice(0, MAX_TEXT)
  const digits = typeof found === 'string' && found.trim() !== '' ? Number(found.trim().replace(/%$/, '')) : found
  return typeof digits === 'number' && Number.isFinite(digits) ? digits : null
}
