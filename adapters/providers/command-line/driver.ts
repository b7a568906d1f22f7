import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'
import type { Spawn } from 'svc/sdk'
import type { ProgramRow } from './programs.ts'

const folder = (description: string) =>
  v.pipe(v.string(), v.check(isAbsolute, 'expected an absolute folder'), v.description(description))
const Config = v.object({
  path: v.optional(
    v.pipe(
      v.array(folder('Absolute path of a folder.')),
      v.description('Folders searched for the program, after those of the system.'),
    ),
    [],
  ),
  home: v.optional(folder('Home folder of the program, with its login; an empty folder when unset.')),
  time_limit_secs: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(3600),
      v.description('Time limit of one answer in seconds.'),
    ),
    600,
  ),
  max_output_bytes: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1024),
      v.maxValue(268_435_456),
      v.description('Limit of the output for one answer in bytes, including its JSON.'),
    ),
    33_554_432,
  ),
})
export type Config = v.InferOutput<typeof Config>

/** A model behind a local program. It is offered no tools, and images are not passed on. */
export function commandLine(program: ProgramRow, spawn: Spawn): ProviderDriver<typeof Config> {
  const { name, title, command, install, defaultModel } = program
  return {
    name,
    title,
    defaultModel,
    config: Config,
    missingRequirement: ({ path }) =>
      spawn.has(command, path)
        ? undefined
        : `Provider ${name} needs the program "${command}", which was not found. ` +
          `Install it (${install}), or add its folder to [providers.${name}] path.`,
    connect: (link) => lazyClient(async () => (await import('./client.ts')).createClient(program, link, spawn)),
  }
}
