import * as v from 'valibot'
import { isOwnVariable, lineOfKey, NestingError, parseToml, TomlError } from 'svc/internal'
import { isObject, Refusal } from 'svc/sdk'
import { HandId } from './schema.ts'

export const DEFINITION_FILE = 'HAND.toml'
export const SKILL_FILE = 'SKILL.md'
export const MAX_DEFINITION_BYTES = 262_144
/** A command of an installation is a program and its arguments: no shell reads it. */
const COMMAND = /^[\w@%+=:,./~-]+(?: [\w@%+=:,./~-]+)*$/

const text = (max: number) => v.pipe(v.string('must be a text'), v.maxLength(max, `at most ${max} characters`))
const some = (max: number) => v.pipe(text(max), v.minLength(1, 'must not be empty'))
const texts = v.optional(v.pipe(v.array(text(256), 'must be a list of texts'), v.maxLength(100, 'at most 100')), [])
const flag = v.optional(v.boolean('must be true or false'), false)
const whole = (min: number, max: number) =>
  v.pipe(
    v.number('must be a number'),
    v.integer('must be a whole number'),
    v.minValue(min, `must be ${min} at least`),
    v.maxValue(max, `must be ${max} at most`),
  )
const Key = v.pipe(
  v.string('must be a text'),
  v.regex(/^[A-Za-z][\w.-]{0,63}$/, 'must be letters, digits, "_", "-" and "."'),
)
const Variable = v.pipe(
  v.string('must be a text'),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable'),
)
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

const Agent = v.object({
  name: v.pipe(some(128), v.regex(/^[^\p{Cc}]+$/u, 'must be one line')),
  description: v.optional(text(4096), ''),
  module: v.optional(text(128), 'builtin:chat'),
  provider: v.optional(some(256), 'default'),
  model: v.optional(some(256), 'default'),
  api_key_env: v.optional(Variable),
  base_url: v.optional(text(2048)),
  max_tokens: v.optional(whole(1, 1_000_000), 4096),
  temperature: v.optional(v.pipe(v.number('must be a number'), v.minValue(0), v.maxValue(2, 'must be 2 at most')), 0.7),
  system_prompt: v.pipe(some(60_000), v.regex(/\S/, 'must not be empty')),
  max_iterations: v.optional(whole(1, 1000), 40),
  heartbeat_interval_secs: v.optional(whole(60, 86_400)),
})
/** When it runs, and what it is told then; not in the format of other systems, which have the interval only. */
const Schedule = v.object({
  cron: v.optional(text(256)),
  tz: v.optional(text(64)),
  prompt: v.optional(some(4096)),
  /** A select setting whose values are seconds or cron expressions. */
  setting: v.optional(Key),
})
/** What it may reach beside its tools; not in the format of other systems. An absent list grants nothing. */
const Capabilities = v.object({ network: texts, shell: texts, agent_message: texts })

const Definition = v.object({
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
  agent: Agent,
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
export type Definition = v.InferOutput<typeof Definition>

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
export function ignoredKeys(toml: string): readonly string[] {
  return unread(Definition, parseText(toml), '')
}
function unread(schema: unknown, value: unknown, path: string): readonly string[] {
  if (!isObject(schema)) return []
  const { entries, wrapped, item } = schema
  if (isObject(entries))
    return Object.entries(isObject(value) ? value : {}).flatMap(([key, each]) =>
      key in entries ? unread(entries[key], each, `${path}${key}.`) : [`${path}${key}`],
    )
  if (wrapped !== undefined) return unread(wrapped, value, path)
  if (item === undefined || !Array.isArray(value)) return []
  return [...new Set(value.flatMap((each) => unread(item, each, path)))]
}

/** Throws `DefinitionProblem` that names line and key of the first wrong value. */
export function readDefinition(toml: string): Definition {
  if (Buffer.byteLength(toml) > MAX_DEFINITION_BYTES)
    throw new DefinitionProblem(undefined, undefined, `has more than ${MAX_DEFINITION_BYTES} bytes`)
  const table = parseText(toml)
  const problemAt = (key: string, reason: string): DefinitionProblem => problemIn(toml, key, reason)
  if ('agents' in table && !('agent' in table))
    throw problemAt('agents', 'a hand is one agent here: put it into [agent]')
  const result = v.safeParse(Definition, table, { abortEarly: true, abortPipeEarly: true })
  if (!result.success) {
    const [issue] = result.issues
    const isMissing = issue.message.startsWith('Invalid key: ') && issue.message.endsWith('received undefined')
    throw problemAt(v.getDotPath(issue) ?? 'id', isMissing ? 'is missing' : issue.message)
  }
  checkWhole(result.output, problemAt)
  return result.output
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
