import { join } from 'node:path'
import { configJsonSchema } from '../config/json-schema.ts'
import type { Schema } from '../config/shape.ts'
import { builtInFolders, namedFolders } from '../host/folders.ts'
import { createLoader } from '../host/loader.ts'
import { command, homeArgs } from './command.ts'
import { exits } from './failure.ts'
import { note, printJson } from './output.ts'
import { findPlace, loadSettings } from './settings.ts'

export default command({
  description: 'Print the JSON Schema (draft-07) of config.toml with the sections of the plugins of this home.',
  args: homeArgs,
  examples: [
    ['svc config schema > config.schema.json', 'for an editor that completes TOML'],
    ["svc config schema | jq '.properties | keys'", 'the keys there are'],
  ],
  async run(args) {
    const place = findPlace(args)
    const { config } = await loadSettings(place)
    const builtIns = await builtInFolders()
    const loader = createLoader({ builtIns: new Set(builtIns), cacheDir: join(place.home, 'cache', 'plugins') })
    const schemas = new Map<string, Schema>()
    for (const folder of [
      ...builtIns,
      ...(await namedFolders([...config.plugins.paths, join(place.home, 'plugins')])),
    ]) {
      try {
        const { name, config: schema } = await loader.load(folder, false)
        schemas.set(name, schema)
      } catch (error) {
        // A broken plugin must not hide the keys of the others.
        note(`warning: ${folder} is left out: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    printJson(await configJsonSchema(schemas))
    return exits.ok
  },
})
