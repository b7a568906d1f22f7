import { findNearest } from '../schema/nearest.ts'
import { redact } from '../config/redact.ts'
import { splitKey } from '../config/layer.ts'
import { wholeSchema } from '../config/schema.ts'
import { findSchema, isTree, knownKeys } from '../config/shape.ts'
import type { AnyPlugin } from '../host/define.ts'
import { defineCommand, homeArgs } from './command.ts'
import { exits, Failure } from './failure.ts'
import { note, print, printJson } from './output.ts'
import { findUnknown, loadWithPlugins } from './plugin-definitions.ts'
import { locateHome } from './home-location.ts'
import { commandLine } from '../process/command-name.ts'

export default defineCommand({
  description:
    'Show the configuration as the daemon of this home would get it, or one key of it. Secrets are shown as ***.',
  args: {
    key: { type: 'positional', required: false, description: 'Dotted key, such as rate_limit.tokens_per_minute' },
    ...homeArgs,
    sources: { type: 'boolean', description: 'Say where each value comes from' },
  },
  examples: [
    ['svc config get', 'everything'],
    ['svc config get listen_addr', 'one value'],
    ['svc config get --sources', 'with the file, variable or flag of each value'],
  ],
  async run(args) {
    const { loaded, definitions } = await loadWithPlugins(locateHome(args))
    const { config, warnings, sources } = loaded
    const schema = wholeSchema(definitions)
    for (const warning of warnings) note(`warning: ${warning}`)
    const shown = redact(config, schema)
    const sourceOf = (key: string): string => (args.sources ? `  # ${sources.get(key) ?? 'default'}` : '')
    if (args.key === undefined) {
      if (args.json) printJson(args.sources ? { config: shown, sources: Object.fromEntries(sources), warnings } : shown)
      else
        print(
          flatten(shown)
            .map(([key, value]) => `${key} = ${value}${sourceOf(key)}`)
            .join('\n'),
        )
      return exits.ok
    }
    const path = splitKey(args.key)
    checkKey(args.key, path, definitions)
    const value = path.reduce<unknown>((tree, key) => (isTree(tree) ? tree[key] : undefined), shown)
    if (args.json)
      printJson(args.sources ? { value: value ?? null, source: sources.get(args.key) ?? 'default' } : (value ?? null))
    else if (isTree(value))
      print(
        flatten(value, path)
          .map(([key, item]) => `${key} = ${item}`)
          .join('\n'),
      )
    else {
      const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
      print(`${text}${sourceOf(args.key)}`)
    }
    return exits.ok
  },
})

/** Throws a `Failure` for a key that nothing reads. */
function checkKey(key: string, path: readonly string[], definitions: readonly AnyPlugin[]): void {
  const unknown = path[0] === 'plugins' && path.length > 2 ? findUnknown(definitions, path) : undefined
  if (unknown !== undefined)
    throw new Failure(exits.notFound, `${key}: ${unknown}`, `${commandLine('config schema')} lists the keys`)
  const schema = wholeSchema(definitions)
  if (findSchema(schema, path) !== undefined) return
  const nearest = findNearest(path[0] ?? '', knownKeys(schema))
  throw new Failure(
    exits.notFound,
    `unknown key "${key}"`,
    nearest === undefined
      ? `${commandLine('config get')} lists the keys`
      : `did you mean "${[nearest, ...path.slice(1)].join('.')}"?`,
  )
}

function flatten(value: unknown, path: readonly string[] = []): [string, string][] {
  if (isTree(value) && (Object.keys(value).length > 0 || path.length === 0))
    return Object.entries(value).flatMap(([key, item]) => (item === undefined ? [] : flatten(item, [...path, key])))
  return [[path.join('.'), JSON.stringify(value)]]
}
