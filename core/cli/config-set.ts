import { join } from 'node:path'
import { redact } from '../config/redact.ts'
import { nest, splitKey } from '../config/layer.ts'
import { needsRestart } from '../config/live.ts'
import { ConfigError } from '../config/problem.ts'
import { wholeSchema } from '../config/schema.ts'
import { checkConfigValue, setConfigValue, toConfigValue } from '../config/set.ts'
import { readDaemonFile } from '../storage/lock.ts'
import { defineCommand, homeArgs } from './command.ts'
import { exits, Failure } from './failure.ts'
import { print, printJson } from './output.ts'
import { checkPluginKey, readDefinitions } from './plugin-definitions.ts'
import { locateHome } from './home-location.ts'
import { loadSettings } from './settings.ts'
import { commandLine } from '../process/command-name.ts'

export default defineCommand({
  description:
    'Write one key into <home>/config.toml. Comments and other lines stay as they are; a wrong value is refused.',
  args: {
    key: { type: 'positional', required: true, description: 'Dotted key, such as rate_limit.tokens_per_minute' },
    value: { type: 'positional', required: true, description: 'Its value; a list as a,b or JSON' },
    ...homeArgs,
  },
  examples: [
    ['svc config set default_model gpt-5-mini', 'a text'],
    ['svc config set outbound.allow 10.0.0.0/8,ollama.lan', 'a list'],
    ['svc config set plugins.watch true', 'a switch'],
  ],
  async run(args) {
    const location = locateHome(args)
    const file = join(location.home, 'config.toml')
    const { config } = await loadSettings(location)
    const definitions = await readDefinitions(location.home, config.plugins.paths)
    const schema = wholeSchema(definitions)
    const value = toConfigValue(args.key, args.value, schema)
    const path = splitKey(args.key)
    try {
      checkPluginKey(definitions, config, path, value)
      checkConfigValue('config set', args.key, value, schema)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      throw new Failure(
        exits.usage,
        error.message.replace(/^config set: /, ''),
        error.message.includes('config schema')
          ? 'nothing was written'
          : `nothing was written; ${commandLine('config schema')} lists every key`,
        { cause: error },
      )
    }
    await setConfigValue(file, args.key, value, schema)
    const { sources } = await loadSettings(location)
    const source = sources.get(args.key)
    const overridden = source !== undefined && !source.startsWith(file)
    const running = readDaemonFile(location.home) !== undefined
    const atStart = needsRestart(path, schema)
    const shown = path.reduce<unknown>(
      (tree, key) => (tree as Record<string, unknown>)[key],
      redact(nest(path, value), schema),
    )
    if (args.json)
      printJson({
        key: args.key,
        value: shown,
        file,
        restart_required: running && atStart,
        ...(overridden ? { overridden_by: source } : {}),
      })
    else {
      print(`${args.key} = ${JSON.stringify(shown)} is in ${file}`)
      if (overridden) print(`It has no effect now, because ${source} sets it too.`)
      else if (running)
        print(
          atStart
            ? 'The running daemon takes it at its next start.'
            : `The running daemon takes it with ${commandLine('config reload')}.`,
        )
    }
    return exits.ok
  },
})
