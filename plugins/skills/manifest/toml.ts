import * as v from 'valibot'
import { isOwnVariable, NestingError, parseToml, suggest, TomlError, unknownKeys } from 'svc/internal'
import { check, problemAt } from './check.ts'
import type { Source } from './check.ts'
import { Description, Name } from './front-matter.ts'
import { offeredPackages, runtimes, SkillProblem } from './skill.ts'
import type { Runtime, SkillTool, SkillVariable } from './skill.ts'

export const MANIFEST_FILE = 'skill.toml'
const MAX_TOOLS = 100

const text = (max: number) => v.pipe(v.string('must be a text'), v.maxLength(max, `at most ${max} characters`))
const texts = (max: number) => v.optional(v.pipe(v.array(text(256)), v.maxLength(max, `at most ${max}`)), [])
const spellings: Readonly<Record<string, Runtime>> = { promptonly: 'prompt_only' }
const Type = v.pipe(
  v.string('must be a text'),
  v.transform((name) => spellings[name] ?? name),
  v.picklist(runtimes, `must be one of ${runtimes.join(', ')}`),
)
const FileName = v.pipe(
  text(256),
  v.regex(/^(?!\.{0,2}(?:\/|$))(?!.*(?:\/\.{1,2}(?:\/|$)|\\))[^\0]+$/, 'must be a file in the folder of the skill'),
)
const Packages = v.optional(
  v.array(v.picklist(offeredPackages, `must be of ${offeredPackages.join(', ')}: bring others in the folder`)),
  [],
)
const Variable = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable'),
  v.check((name) => !isOwnVariable(name), 'is a variable of svc or of its database'),
)
/** `network:<host pattern>` and the others; older names of other systems are refused with what there is. */
const Permission = v.pipe(
  v.string('must be a text'),
  v.regex(
    /^(?:network:[a-z0-9*.:[\]-]{1,253}|files:read|files:write|env:[A-Za-z_][A-Za-z0-9_]{0,127})$/,
    'must be network:<host>, files:read, files:write or env:<NAME>',
  ),
)

const Tool = v.object({
  name: v.pipe(
    v.string('must be a text'),
    v.regex(/^[a-z][a-z0-9_]{0,63}$/, 'must be snake_case, at most 64 characters'),
  ),
  description: v.pipe(text(1024), v.minLength(1, 'must not be empty')),
  input_schema: v.optional(
    v.pipe(
      v.record(v.string(), v.unknown(), 'must be a JSON Schema'),
      v.check(({ type }) => type === undefined || type === 'object', 'must describe an object'),
    ),
    {},
  ),
  files: texts(20),
})
const Manifest = v.object({
  skill: v.object({
    name: Name,
    version: v.optional(text(64), '0.1.0'),
    description: v.optional(Description),
    author: v.optional(text(256), ''),
    license: v.optional(text(500), ''),
    compatibility: v.optional(text(500), ''),
    tags: texts(20),
    env_passthrough: v.optional(v.pipe(v.array(Variable), v.maxLength(50, 'at most 50')), []),
  }),
  runtime: v.optional(v.object({ type: Type, entry: v.optional(FileName), packages: Packages }), {
    type: 'prompt_only',
  }),
  tools: v.optional(
    v.object({ provided: v.optional(v.pipe(v.array(Tool), v.maxLength(MAX_TOOLS, `at most ${MAX_TOOLS} tools`)), []) }),
    {},
  ),
  requirements: v.optional(
    v.object({
      tools: texts(50),
      capabilities: v.optional(v.pipe(v.array(Permission), v.maxLength(100, 'at most 100')), []),
    }),
    {},
  ),
  prompt_context: v.optional(v.string('must be a text'), ''),
  /** Where a hub had it from: written there, and not read. */
  source: v.optional(v.record(v.string(), v.unknown())),
  config: v.optional(
    v.record(
      Variable,
      v.object({
        description: v.optional(text(500), ''),
        env: v.optional(Variable),
        default: v.optional(text(4096)),
        required: v.optional(v.boolean('must be true or false'), false),
      }),
    ),
    {},
  ),
})

export interface SkillToml {
  readonly name: string
  readonly version: string
  readonly description: string | undefined
  readonly author: string
  readonly license: string
  readonly compatibility: string
  readonly tags: readonly string[]
  readonly runtime: Runtime
  readonly entry: string
  readonly packages: readonly string[]
  readonly tools: readonly SkillTool[]
  readonly variables: readonly SkillVariable[]
  readonly permissions: readonly string[]
  readonly needsTools: readonly string[]
  readonly promptContext: string
}

/** Reads a `skill.toml`. Throws `SkillProblem`. */
export function readSkillToml(content: string): SkillToml {
  const source: Source = { file: MANIFEST_FILE, text: content, firstLine: 1 }
  const table = parse(source)
  refuseUnknown(source, table)
  const { skill, runtime, tools, requirements, prompt_context, config } = check(Manifest, table, source)
  const provided = tools.provided ?? []
  checkRuntime(source, runtime, provided.length > 0)
  const twice = provided.find(({ name }, at) => provided.findIndex((other) => other.name === name) !== at)
  if (twice) throw problemAt(source, 'tools.provided', `has the tool "${twice.name}" twice`)
  const variables: readonly SkillVariable[] = [
    ...Object.entries(config).map(([name, { description, env, default: fallback, required }]) => ({
      name,
      description,
      env: env ?? name,
      default: fallback,
      required,
    })),
    ...skill.env_passthrough.map((name) => ({ name, description: '', env: name, default: undefined, required: false })),
  ]
  const permissions = new Set([...(requirements.capabilities ?? []), ...variables.map(({ env }) => `env:${env}`)])
  const needsFiles = provided.find(({ files }) => files.length > 0)
  if (needsFiles && !permissions.has('files:read') && !permissions.has('files:write'))
    throw problemAt(source, 'files', `the tool "${needsFiles.name}" needs files:read in requirements.capabilities`)
  if (runtime.type === 'wasm' && permissions.size > 0)
    throw problemAt(source, 'requirements.capabilities', 'WebAssembly computes only: it can use none of these')
  return {
    name: skill.name,
    version: skill.version,
    description: skill.description,
    author: skill.author,
    license: skill.license,
    compatibility: skill.compatibility,
    tags: skill.tags,
    runtime: runtime.type,
    entry: runtime.type === 'prompt_only' ? '' : (runtime.entry ?? ''),
    packages: runtime.packages ?? [],
    tools: provided.map(({ name, description, input_schema: schema, files }) => ({
      name,
      description,
      inputSchema: { type: 'object', ...schema },
      files,
    })),
    variables,
    permissions: [...permissions].toSorted(),
    needsTools: requirements.tools ?? [],
    promptContext: prompt_context,
  }
}

/** A misspelt key would be a right or a setting that the skill does not get. */
function refuseUnknown(source: Source, table: unknown): void {
  const [unknown] = unknownKeys(Manifest, table)
  if (!unknown) return
  const isOfSkill = Object.hasOwn(Manifest.entries.skill.entries, unknown.path)
  throw problemAt(source, unknown.path, isOfSkill ? 'belongs under [skill]' : `is unknown${suggest(unknown.nearest)}`)
}

type RuntimeTable = v.InferOutput<typeof Manifest>['runtime']
function checkRuntime(source: Source, { type, entry, packages = [] }: RuntimeTable, hasTools: boolean): void {
  if (type !== 'node' && packages.length > 0)
    throw problemAt(source, 'runtime.packages', 'are for programs of Node: set runtime.type = "node"')
  if (type === 'prompt_only') {
    if (hasTools) throw problemAt(source, 'tools.provided', 'tools need a runtime: set runtime.type and runtime.entry')
    return
  }
  if (entry === undefined) throw problemAt(source, 'runtime', 'needs entry, the file that runs')
  if (!hasTools) throw problemAt(source, 'runtime.type', 'has nothing to run: add [[tools.provided]]')
}

function parse(source: Source): unknown {
  try {
    return parseToml(source.text)
  } catch (error) {
    if (error instanceof NestingError) throw new SkillProblem({ file: source.file }, error.message)
    if (!(error instanceof TomlError)) throw error
    const reason = error.message.split('\n', 1)[0] ?? 'is no TOML'
    throw new SkillProblem({ file: source.file, line: error.line }, reason)
  }
}
