import { readVariable } from 'svc/internal'
import type { Spawn, Tools } from 'svc/sdk'
import type { McpServers } from '../mcp/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Skills } from '../skills/contract.ts'
import type { Definition, Requirement } from './definition.ts'

export interface RequirementState {
  readonly key: string
  readonly label: string
  readonly satisfied: boolean
  readonly optional: boolean
  readonly type: Requirement['requirement_type'] | 'tools' | 'skills' | 'mcp_servers'
  readonly check_value: string
  readonly description: string
  readonly install?: Requirement['install']
}
export interface RequirementDeps {
  readonly spawn: Pick<Spawn, 'has'>
  readonly tools: Pick<Tools, 'list'>
  readonly inference: () => Inference | undefined
  readonly mcp: () => McpServers | undefined
  readonly skills: () => Skills | undefined
}

const PLATFORMS: Readonly<Record<string, string>> = { darwin: 'macos', win32: 'windows' }
export const platform = (): string => PLATFORMS[process.platform] ?? process.platform

/** What there is on this machine and in this daemon, looked at once for any number of definitions. */
export class Present {
  readonly #deps: RequirementDeps
  readonly #tools: ReadonlySet<string>
  readonly #skills: ReadonlySet<string>
  readonly #servers: ReadonlySet<string>
  /** Variables whose key a provider has, from whatever place. */
  readonly #keys: ReadonlySet<string>

  static async look(deps: RequirementDeps): Promise<Present> {
    const [skills, servers] = await Promise.all([deps.skills()?.list() ?? [], deps.mcp()?.list() ?? []])
    return new Present(
      deps,
      skills.filter(({ enabled }) => enabled).map(({ name }) => name),
      servers.filter(({ enabled }) => enabled).map(({ name }) => name),
    )
  }
  private constructor(deps: RequirementDeps, skills: readonly string[], servers: readonly string[]) {
    this.#deps = deps
    this.#tools = new Set(deps.tools.list().map(({ name }) => name))
    this.#skills = new Set(skills)
    this.#servers = new Set(servers)
    const providers = deps.inference()?.providers() ?? []
    this.#keys = new Set(
      providers.flatMap(({ authStatus, envVar }) => (authStatus === 'configured' && envVar ? [envVar] : [])),
    )
  }

  /** Whether a variable has a value, or a provider has the key that it is named for. Says nothing of the value. */
  variable(name: string): boolean {
    return (readVariable(name) ?? '') !== '' || this.#keys.has(name)
  }
  program(name: string): boolean {
    return this.#deps.spawn.has(name)
  }

  /** Those of the definition, and what its lists name. */
  check(definition: Definition): readonly RequirementState[] {
    const { requires, tools, skills, mcp_servers: servers } = definition
    const named = tools.filter((name) => !name.includes('*') && !name.startsWith('mcp_'))
    return [
      ...requires.map((one) => ({
        key: one.key,
        label: one.label,
        satisfied: this.#isMet(one),
        optional: one.optional,
        type: one.requirement_type,
        check_value: one.check_value,
        description: one.description,
        ...(one.install && { install: one.install }),
      })),
      ...this.#listed('tools', 'Tools', named, this.#tools, false),
      ...this.#listed('skills', 'Skills', skills, this.#skills, true),
      ...this.#listed('mcp_servers', 'MCP servers', servers, this.#servers, true),
    ]
  }

  #isMet({ requirement_type: type, check_value: value }: Requirement): boolean {
    if (type === 'binary') return this.program(value)
    if (type === 'any_env_var') return value.split(/[\s,|]+/).some((name) => this.variable(name))
    return this.variable(value)
  }
  #listed(
    type: 'tools' | 'skills' | 'mcp_servers',
    title: string,
    names: readonly string[],
    present: ReadonlySet<string>,
    optional: boolean,
  ): readonly RequirementState[] {
    if (names.length === 0) return []
    const missing = names.filter((name) => !present.has(name))
    const description =
      missing.length === 0 ? '' : 'There is no such name, or what offers it is not loaded or not configured.'
    const label = missing.length === 0 ? title : `${title}: ${missing.join(', ')}`
    return [
      { key: type, label, satisfied: missing.length === 0, optional, type, check_value: names.join(','), description },
    ]
  }
}

export const isMet = (requirements: readonly RequirementState[]): boolean =>
  requirements.every(({ satisfied, optional }) => satisfied || optional)
