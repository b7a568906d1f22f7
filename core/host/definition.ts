import * as v from 'valibot'
import { coreKeys, reservedPluginNames } from '../config/schema.ts'
import { knownKeys } from '../config/shape.ts'
import { line } from '../schema/line.ts'
import type { AnyPlugin, Tokens } from './define.ts'

/** A problem with the folder or definition of a plugin, reported to its author. */
export class PluginProblem extends Error {
  override readonly name = 'PluginProblem'
}

const Token = v.object({ id: v.pipe(v.string(), v.minLength(1)) })
const TokenRecord = v.optional(v.record(v.string(), Token))
const relativePath = v.pipe(
  v.string(),
  v.regex(/^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/, 'must be a relative path of plain names, such as "page/index.html"'),
)
const routePath = v.pipe(v.string(), v.regex(/^\/[\w/:.~-]+$/, 'must be the path of a route, such as "/api/notes"'))
const Table = v.strictObject({
  route: routePath,
  rows: v.optional(v.string()),
  columns: v.pipe(v.array(v.strictObject({ field: v.string(), title: line(64) })), v.minLength(1, 'must not be empty')),
  empty: v.optional(line(200)),
})
const Action = v.strictObject({
  title: line(64),
  method: v.picklist(['POST', 'PUT', 'PATCH', 'DELETE'], 'must be POST, PUT, PATCH or DELETE'),
  route: routePath,
  fields: v.optional(v.array(v.strictObject({ name: v.string(), title: line(64), required: v.optional(v.boolean()) }))),
  dangerous: v.optional(v.boolean()),
})
const Page = v.pipe(
  v.object({
    path: v.pipe(v.string(), v.regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be kebab-case, such as "overview"')),
    title: line(64),
    group: v.optional(line(32)),
    file: v.optional(v.pipe(relativePath, v.endsWith('.html', 'must be an HTML file'))),
    url: v.optional(
      v.pipe(v.string(), v.regex(/^(?:\/[a-z0-9-]+)+$/, 'must be the path of a route of the plugin, such as "/board"')),
    ),
    assets: v.optional(v.array(relativePath)),
    table: v.optional(Table),
    actions: v.optional(v.array(Action)),
  }),
  v.check(({ file, table }) => (file === undefined) !== (table === undefined), 'must have either a file or a table'),
)

const names = v.optional(v.array(v.pipe(v.string(), v.regex(/^\S+$/, 'must be a name without spaces'))))
const flag = v.optional(v.boolean('must be true or false'))
const Uses = v.strictObject({
  routes: v.optional(v.array(v.pipe(v.string(), v.startsWith('/', 'must be a path such as "/api/weather/*"')))),
  hooks: names,
  tools: names,
  hosts: names,
  tables: flag,
  secrets: v.optional(v.union([v.boolean(), v.array(v.string())], 'must be true, or a list of names')),
  programs: names,
  jobs: flag,
  listeners: flag,
  credentials: flag,
})

/** Advice for missing keys of a definition. */
const missingKeys: Readonly<Record<string, string>> = {
  name: 'is missing; write a name in kebab-case, such as "my-plugin"',
  version: 'is missing; write a version, such as "1.0.0"',
  config: 'is missing; write v.object({}) when there is nothing to configure',
  setup: 'is missing; write a function that registers what the plugin adds',
}
function explainMissing({ path }: v.BaseIssue<unknown>): string {
  const key = path?.at(-1)?.key
  return (typeof key === 'string' ? missingKeys[key] : undefined) ?? 'must "export default definePlugin({ … })"'
}

const entries = {
  name: v.pipe(
    v.string('must be a string'),
    v.regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/, 'must be kebab-case, such as "my-plugin"'),
    v.maxLength(64),
    v.check(
      (name) => !reservedPluginNames.includes(name),
      ({ input }) => `"${input}" is a key of [plugins] and cannot be the name of a plugin`,
    ),
    v.notValue('core', '"core" is what the daemon itself stores its data under: take another name'),
  ),
  version: v.pipe(v.string('must be a string'), v.minLength(1, 'must not be empty')),
  config: v.looseObject(
    { kind: v.literal('schema') },
    'must be a valibot schema, v.object({}) when there is nothing to configure',
  ),
  sections: v.optional(
    v.record(
      v.pipe(
        v.string(),
        v.regex(/^[a-z][a-z0-9_]*$/, 'must be a key in snake_case'),
        v.check(
          (name) => !coreKeys.includes(name),
          ({ input }) => `"${input}" is a key of svc itself`,
        ),
      ),
      v.looseObject({ kind: v.literal('schema') }, 'must be a valibot schema'),
    ),
  ),
  hooks: v.optional(v.array(v.object({ id: v.pipe(v.string(), v.minLength(1)), kind: v.string() }))),
  uses: v.optional(Uses),
  reload: v.optional(v.picklist(['overlap', 'exclusive'], 'must be "overlap" or "exclusive"')),
  requires: TokenRecord,
  optional: TokenRecord,
  provides: TokenRecord,
  migrations: v.optional(
    v.pipe(
      v.array(
        v.object({
          id: v.pipe(v.string(), v.minLength(1)),
          sql: v.pipe(v.string(), v.minLength(1)),
          postgresql: v.optional(v.pipe(v.string(), v.minLength(1))),
        }),
      ),
      v.check((migrations) => new Set(migrations.map(({ id }) => id)).size === migrations.length, 'ids must be unique'),
    ),
  ),
  databaseSidecars: v.optional(
    v.array(v.pipe(v.string(), v.regex(/^[a-z0-9-]+\.[a-z]+$/, 'must be a file name such as "my-plugin.anchor"'))),
  ),
  pages: v.optional(
    v.pipe(
      v.array(Page),
      v.check((pages) => new Set(pages.map(({ path }) => path)).size === pages.length, 'paths must be unique'),
    ),
  ),
  offline: v.optional(v.record(v.string(), v.function())),
  setup: v.function('must be a function'),
}
const Definition = v.object(entries, explainMissing)

/** The definition that a module exports by default. Throws `PluginProblem` with what is wrong with it. */
export function checkDefinition(exported: unknown, file: string): AnyPlugin {
  const candidate =
    typeof exported === 'object' && exported !== null && 'default' in exported ? exported.default : undefined
  if (candidate === undefined || candidate === null)
    throw new PluginProblem(`${file} has no default export: it must "export default definePlugin({ … })"`)
  const result = v.safeParse(Definition, candidate)
  if (!result.success) {
    const problems = result.issues.map((issue) => `${v.getDotPath(issue) ?? 'the default export'}: ${issue.message}`)
    throw new PluginProblem(`${file} does not define a plugin: ${problems.join('; ')}`)
  }
  const { name, config, sections = {}, databaseSidecars = [] } = candidate as AnyPlugin
  const foreign = databaseSidecars.find((sidecar) => !sidecar.startsWith(`${name}.`))
  if (foreign !== undefined)
    throw new PluginProblem(
      `${file} does not define a plugin: databaseSidecars: "${foreign}" must begin with "${name}."`,
    )
  const twice = knownKeys(config).find((key) => Object.hasOwn(sections, key))
  if (twice !== undefined)
    throw new PluginProblem(`${file} does not define a plugin: "${twice}" is in config and in sections`)
  // Validated above. The object itself is returned, because setup may be a method that uses `this`.
  return candidate as AnyPlugin
}

export const requiredIds = (definition: AnyPlugin): readonly string[] => idsOf(definition.requires)
export const providedIds = (definition: AnyPlugin): readonly string[] => idsOf(definition.provides)
function idsOf(tokens: Tokens | undefined): readonly string[] {
  return [...new Set(Object.values(tokens ?? {}).map(({ id }) => id))]
}
