import { configJsonSchema } from '../config/json-schema.ts'
import { defineCommand, homeArgs } from './command.ts'
import { exits } from './failure.ts'
import { printJson } from './output.ts'
import { readDefinitions } from './plugin-definitions.ts'
import { locateHome } from './home-location.ts'
import { loadSettings } from './settings.ts'

export default defineCommand({
  description: 'Print the JSON Schema (draft-07) of config.toml with the sections of the plugins of this home.',
  args: homeArgs,
  examples: [
    ['svc config schema > config.schema.json', 'for an editor that completes TOML'],
    ["svc config schema | jq '.properties | keys'", 'the keys there are'],
  ],
  async run(args) {
    const location = locateHome(args)
    const { config } = await loadSettings(location)
    const definitions = await readDefinitions(location.home, config.plugins.paths)
    printJson(await configJsonSchema(definitions))
    return exits.ok
  },
})
