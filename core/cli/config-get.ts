import { findNearest } from '../schema/nearest.ts'
import { redact } from '../config/redact.ts'
import { splitKey } from '../config/layer.ts'
import { ConfigSchema } from '../config/schema.ts'
import { findSchema, isTree, knownKeys } from '../config/shape.ts'
import { command, homeArgs } from './command.ts'
import { exits, Failure } from './failure.ts'
import { note, print, printJson } from './output.ts'
import { findPlace, loadSettings } from './settings.ts'
import { commandLine } from '../process/command-name.ts'

export default command({
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
    const { config, warnings, sources } = await loadSettings(findPlace(args))
    for (const warning of warnings) note(`warning: ${warning}`)
    const shown = redact(config)
    if (args.key === undefined) {
      if (args.json) printJson(args.sources ? { config: shown, sources: Object.fromEntries(sources), warnings } : shown)
      else
        print(
          flatten(shown)
            .map(([key, value]) => `${key} = ${value}${args.sources ? `  # ${sources.get(key) ?? 'default'}` : ''}`)
            .join('\n'),
        )
      return exits.ok
    }
    const path = splitKey(args.key)
    if (findSchema(ConfigSchema, path) === undefined) {
      const nearest = findNearest(path[0] ?? '', knownKeys(ConfigSchema))
      throw new Failure(
        exits.notFound,
        `unknown key "${args.key}"`,
        nearest === undefined
          ? `${commandLine('config get')} lists the keys`
          : `did you mean "${[nearest, ...path.slice(1)].join('.')}"?`,
      )
    }
    if (path[0] === 'plugins' && path.length > 2) {
      const { findUnknown, readDefinitions } = await import('./plugin-definitions.ts')
      const unknown = findUnknown(await readDefinitions(config.home_dir, config.plugins.paths), path)
      if (unknown !== undefined)
        throw new Failure(exits.notFound, `${args.key}: ${unknown}`, `${commandLine('config schema')} lists the keys`)
    }
    const value = path.reduce<unknown>((tree, key) => (isTree(tree) ? tree[key] : undefined), shown)
    if (args.json)
      printJson(args.sources ? { value: value ?? null, source: sources.get(args.key) ?? 'default' } : (value ?? null))
    else if (isTree(value))
      print(
        flatten(value, path)
          .map(([key, item]) => `${key} = ${item}`)
          .join('\n'),
      )
    else
      print(
        `${value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)}${args.sources ? `  # ${sources.get(args.key) ?? 'default'}` : ''}`,
      )
    return exits.ok
  },
})

function flatten(value: unknown, path: readonly string[] = []): [string, string][] {
  if (isTree(value) && (Object.keys(value).length > 0 || path.length === 0))
    return Object.entries(value).flatMap(([key, item]) => (item === undefined ? [] : flatten(item, [...path, key])))
  return [[path.join('.'), JSON.stringify(value)]]
}
