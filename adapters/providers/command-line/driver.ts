import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'
import type { Spawn } from 'svc/sdk'
import type { ProgramRow } from './programs.ts'

const Folder = v.pipe(v.string(), v.check(isAbsolute, 'expected an absolute folder'))
const Config = v.object({
  /** Folders the program is looked for in, after the system's own ones. */
  path: v.optional(v.array(Folder), []),
  /** The home it runs with, where its login is. Absent: an empty one, so that it is nobody. */
  home: v.optional(Folder),
  /** Seconds one answer may take. */
  time_limit_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(3600)), 600),
  /** Bytes one answer may have as it is written, its JSON included. */
  max_output_bytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1024), v.maxValue(268_435_456)), 33_554_432),
})
export type Config = v.InferOutput<typeof Config>

/** A model behind a program of this machine. Our tools are not offered to it, and pictures do not reach it. */
export function commandLine(program: ProgramRow, spawn: Spawn): ProviderDriver<typeof Config> {
  const { name, title, command, install, defaultModel } = program
  return {
    name,
    title,
    defaultModel,
    config: Config,
    lacks: ({ path }) =>
      spawn.has(command, path)
        ? undefined
        : `Provider ${name} has no program: there is no "${command}" in the folders for programs. Install it (${install}), or name its folder in [providers.${name}] path.`,
    connect: (link) => lazyClient(async () => (await import('./client.ts')).createClient(program, link, spawn)),
  }
}
