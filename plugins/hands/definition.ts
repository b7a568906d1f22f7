import * as v from 'valibot'
import {
  hostPatternProblem,
  isOwnVariable,
  lineOfKey,
  NestingError,
  parseToml,
  TomlError,
  unknownKeys,
} from 'svc/internal'
import type { UnknownKey } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { Agent, Capabilities, flag, Key, some, text, texts, Variable } from './fields.ts'
import { readTeam, Roles } from './roles.ts'
import type { Helper, Rights } from './roles.ts'
import { HandId } from './schema.ts'

export const DEFINITION_FILE = 'HAND.toml'
export const SKILL_FILE = 'SKILL.md'
export const MAX_DEFINITION_BYTES = 262_144
/** A command of an installation is a program and its arguments: no shell reads it. */
const COMMAND = /^[\w@%+=:,./~-]+(?: [\w@%+=:,./~-]+)*$/

/** Variables that programs never get; `core/process/environment.ts` refuses more when a program starts. */
const SYSTEM_VARIABLES =
  /^(?:PATH|HOME|TMPDIR|TMP|TEMP|ENV|IFS|LD_.*|DYLD_.*|NODE_.*|PYTHON.*|BASH_ENV|GIT_.*|.*_PROXY)$/i
const Command = v.pipe(text(500), v.regex(COMMAND, 'must be one program with plain arguments: no shell reads it'))

const Install = v.object({
  macos: v.optional(Command),
  windows: v.optional(Command),
  linux_apt: v.optional(Command),
  linux_dnf: v.optional(Command),
  linux_pacman: v.optional(Command),
  pip: v.optional(Command),
  signup_url: v.optional(text(2048)),
  docs_url: v.optional(text(2048)),
  manual_url: v.optional(text(2048)),
  env_example: v.optional(text(500)),
  estimated_time: v.optional(text(100)),
  steps: texts,
})
export const requirementTypes = ['binary', 'env_var', 'api_key', 'any_env_var'] as const
const Requirement = v.pipe(
  v.object({
    key: Key,
    label: some(200),
    requirement_type: v.picklist(requirementTypes, `must be one of ${requirementTypes.join(', ')}`),
    check_value: some(500),
    description: v.optional(text(2000), ''),
    optional: flag,
    install: v.optional(Install),
  }),
  v.forward(
    v.check(
      ({ requirement_type: type, check_value: value }) => type !== 'binary' || /^[\w.+-]+$/.test(value),
      'must be the name of a program in PATH',
    ),
    ['check_value'],
  ),
)
export type Requirement = v.InferOutput<typeof Requirement>

const settingTypes = ['select', 'text', 'toggle'] as const
const Setting = v.object({
  key: Key,
  label: some(200),
  description: v.optional(text(2000), ''),
  setting_type: v.picklist(settingTypes, `must be one of ${settingTypes.join(', ')}`),
  default: v.optional(v.union([text(4096), v.boolean()], 'must be a text, or true or false'), ''),
  /** Makes a text a secret: programs of its tools get the value under this name. */
  env_var: v.optional(Variable),
  /** A text without which its agent has nothing to do; not in the format of other systems. */
  required: flag,
  options: v.optional(
    v.pipe(
      v.array(
        v.object({
          value: text(500),
          label: v.optional(text(200)),
          provider_env: v.optional(Variable),
          binary: v.optional(text(100)),
        }),
      ),
      v.maxLength(100, 'at most 100'),
    ),
    [],
  ),
})
export type Setting = v.InferOutput<typeof Setting>

export const formats = ['number', 'duration', 'bytes', 'percentage', 'text'] as const
const Metric = v.object({
  label: some(100),
  memory_key: some(256),
  format: v.optional(v.picklist(formats, `must be one of ${formats.join(', ')}`), 'text'),
})
export type Metric = v.InferOutput<typeof Metric>

/** When it runs, and what it is told then; not in the format of other systems, which have the interval only. */
const Schedule = v.object({
  cron: v.optional(text(256)),
  tz: v.optional(text(64)),
  prompt: v.optional(some(4096)),
  /** A select setting whose values are seconds or cron expressions. */
  setting: v.optional(Key),
})
const Document = v.object({
  id: v.pipe(HandId),
  name: some(100),
  description: some(1000),
  category: v.optional(
    v.picklist(
      ['content', 'security', 'productivity', 'development', 'communication', 'data', 'finance', 'other'],
      'must be content, security, productivity, development, communication, data, finance or other',
    ),
    'other',
  ),
  icon: v.optional(text(16), ''),
  version: v.optional(text(64), '0.1.0'),
  tools: texts,
  skills: texts,
  mcp_servers: texts,
  requires: v.optional(v.pipe(v.array(Requirement), v.maxLength(50, 'at most 50')), []),
  settings: v.optional(v.pipe(v.array(Setting), v.maxLength(50, 'at most 50')), []),
  agent: v.optional(Agent),
  agents: v.optional(Roles),
  schedule: v.optional(Schedule, {}),
  capabilities: v.optional(Capabilities, {}),
  dashboard: v.optional(
    v.object({ metrics: v.optional(v.pipe(v.array(Metric), v.maxLength(50, 'at most 50')), []) }),
    {},
  ),
  metadata: v.optional(
    v.object({
      frequency: v.optional(text(100)),
      token_consumption: v.optional(text(100)),
      activation_warning: v.optional(text(1000)),
    }),
    {},
  ),
})
type Document = v.InferOutput<typeof Document>
/** Of several agents, `agent` is the coordinator, and the rights are those of all. */
export type Definition = Omit<Document, 'agent' | 'agents' | keyof Rights> &
  Rights & {
    readonly agent: v.InferOutput<typeof Agent>
    /** Of the coordinator; `undefined` for a hand of one agent. */
    readonly role: string | undefined
    /** A template that the coordinator takes its prompt from. */
    readonly base: string | undefined
    readonly helpers: readonly Helper[]
  }

/** Why a definition cannot be used, with the place in its file. */
export class DefinitionProblem extends Error {
  override readonly name = 'DefinitionProblem'
  readonly line: number | undefined
  readonly key: string | undefined
  constructor(line: number | undefined, key: string | undefined, reason: string) {
    const place = line === undefined ? DEFINITION_FILE : `${DEFINITION_FILE}:${line}`
    super([place, key, reason].filter((part) => part !== undefined).join(': '))
    this.line = line
    this.key = key
  }
}

/** Keys that have no effect, such as one that is misspelt or of another system's format. */
export function ignoredKeys(toml: string): readonly UnknownKey[] {
  return unknownKeys(Document, parseText(toml))
}

/** Throws `DefinitionProblem` that names line and key of the first wrong value. */
export function readDefinition(toml: string): Definition {
  if (Buffer.byteLength(toml) > MAX_DEFINITION_BYTES)
    throw new DefinitionProblem(undefined, undefined, `has more than ${MAX_DEFINITION_BYTES} bytes`)
  const table = parseText(toml)
  const problemAt = (key: string, reason: string): DefinitionProblem => problemIn(toml, key, reason)
  const result = v.safeParse(Document, table, { abortEarly: true, abortPipeEarly: true })
  if (!result.success) {
    const [issue] = result.issues
    const isMissing = issue.message.startsWith('Invalid key: ') && issue.message.endsWith('received undefined')
    throw problemAt(v.getDotPath(issue) ?? 'id', isMissing ? 'is missing' : issue.message)
  }
  const definition = withTeam(result.output, (key, reason) => {
    throw reason === 'is missing'
      ? new DefinitionProblem(lineOf(toml, key.slice(0, key.lastIndexOf('.'))), key, reason)
      : problemAt(key, reason)
  })
  checkWhole(definition, problemAt)
  return definition
}

function withTeam({ agent, agents, ...hand }: Document, fail: (key: string, reason: string) => never): Definition {
  if (agent && agents) fail('agents', 'write one [agent] or several [agents.<role>], not both')
  if (agents) return { ...hand, ...readTeam(hand, agents, fail) }
  if (!agent) return fail('agent', 'is missing')
  return { ...hand, agent, role: undefined, base: undefined, helpers: [] }
}

/** The definition that an instance was activated with; the problem when this version of svc cannot read it. */
export function definitionOf({ definition }: { readonly definition: string }): Definition | DefinitionProblem {
  try {
    return readDefinition(definition)
  } catch (error) {
    if (error instanceof DefinitionProblem) return error
    throw error
  }
}
/** The same. Throws `conflict`. */
export function requireDefinition(instance: { readonly definition: string; readonly handId: string }): Definition {
  const found = definitionOf(instance)
  if (!(found instanceof DefinitionProblem)) return found
  throw new Refusal('conflict', `${UNREADABLE}: ${found.message}`, { cause: found })
}
const UNREADABLE = 'The definition of this instance cannot be used; deactivate it and activate it anew'

/** Paths below `/api/hands`. */
const API_NAMES: ReadonlySet<string> = new Set(['active', 'install', 'instances'])

function checkWhole(found: Definition, problemAt: (key: string, reason: string) => DefinitionProblem): void {
  const { id, settings, schedule, dashboard, requires, agent } = found
  if (API_NAMES.has(id)) throw problemAt('id', `"${id}" is a name of the API`)
  const twice = (keys: readonly string[]) => keys.find((key, at) => keys.indexOf(key) !== at)
  const setting = twice(settings.map(({ key }) => key))
  if (setting !== undefined) throw problemAt('settings', `has "${setting}" twice`)
  const requirement = twice(requires.map(({ key }) => key))
  if (requirement !== undefined) throw problemAt('requires', `has "${requirement}" twice`)
  const metric = twice(dashboard.metrics.map(({ label }) => label))
  if (metric !== undefined) throw problemAt('dashboard.metrics', `has "${metric}" twice`)
  settings.forEach(({ setting_type: type, options, default: value, key, env_var: variable }, at) => {
    if (type === 'select' && options.length === 0) throw problemAt(`settings.${at}.options`, `"${key}" has no options`)
    if (type === 'select' && !options.some((option) => option.value === value))
      throw problemAt(`settings.${at}.default`, `of "${key}" is none of its options`)
    if (variable !== undefined && (SYSTEM_VARIABLES.test(variable) || isOwnVariable(variable)))
      throw problemAt(`settings.${at}.env_var`, `"${variable}" is a variable of the system`)
    if (variable !== undefined && type === 'text' && value !== '')
      throw problemAt(`settings.${at}.default`, `of "${key}": a secret has no default`)
    if (type === 'toggle' && !['', 'true', 'false', true, false].includes(value))
      throw problemAt(`settings.${at}.default`, `of "${key}" must be true or false`)
  })
  const chosen = schedule.setting
  if (chosen !== undefined && !settings.some(({ key, setting_type: type }) => key === chosen && type === 'select'))
    throw problemAt('schedule.setting', `there is no select setting "${chosen}"`)
  if (agent.module !== 'builtin:chat') throw problemAt('agent.module', 'must be builtin:chat')
}

/**
 * Throws `DefinitionProblem` for an address where a host is meant. Asked of files only: an instance that was activated
 * with one goes on, without that host.
 */
export function checkHosts(definition: Definition, toml: string): void {
  for (const pattern of definition.capabilities.network) {
    const problem = hostPatternProblem(pattern)
    if (problem !== undefined) throw problemIn(toml, 'capabilities.network', problem)
  }
}

/** With the line of the key. */
export const problemIn = (toml: string, key: string, reason: string): DefinitionProblem =>
  new DefinitionProblem(lineOf(toml, key), key, reason)
/** The table of a list is found by its number, which the line of a key alone does not tell. */
function lineOf(toml: string, key: string): number | undefined {
  const [, list, at = '0', ...rest] = /^(requires|settings|dashboard\.metrics)\.(\d+)\.?(.*)$/.exec(key) ?? []
  if (list === undefined) return lineOfTop(toml, key) ?? 1
  const lines = toml.split('\n')
  const starts = lines.flatMap((line, index) => (line.trim().replaceAll(' ', '') === `[[${list}]]` ? [index] : []))
  const start = starts[Number(at)]
  if (start === undefined) return lineOfKey(toml, list) ?? 1
  const within = rest[0] ? lineOfKey(lines.slice(start + 1, starts[Number(at) + 1]).join('\n'), rest[0]) : undefined
  return within === undefined ? start + 1 : start + 1 + within
}

/** A key without a table stands before the first of them, or names one. */
function lineOfTop(toml: string, key: string): number | undefined {
  if (key.includes('.')) return lineOfKey(toml, key)
  const lines = toml.split('\n')
  const table = lines.findIndex((line) => /^\s*\[/.test(line))
  const named = lines.findIndex((line) => new RegExp(`^\\s*\\[\\[?\\s*${RegExp.escape(key)}\\b`).test(line))
  const top = lineOfKey(lines.slice(0, table < 0 ? undefined : table).join('\n'), key)
  return top ?? (named < 0 ? undefined : named + 1)
}

function parseText(toml: string): object {
  try {
    return parseToml(toml)
  } catch (error) {
    if (error instanceof NestingError) throw new DefinitionProblem(undefined, undefined, error.message)
    if (!(error instanceof TomlError)) throw error
    const reason = (error.message.split('\n', 1)[0] ?? 'is no TOML').replace(/^Invalid TOML document: /, '')
    throw new DefinitionProblem(error.line, undefined, reason)
  }
}
