import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import {
  commandLine,
  defineCommand,
  exits,
  Failure,
  hasDaemon,
  homeArgs,
  launcher,
  locateHome,
  print,
  printJson,
  typesConfig,
} from 'svc/cli'
import { kinds, LAUNCHER, pluginName, templateFiles } from '../scaffold/template.ts'
import { writeFiles } from '../scaffold/write.ts'

export default defineCommand({
  description: 'Make a new plugin with types, a test and a README. A running daemon loads it at once.',
  args: {
    name: { type: 'positional', required: true, description: 'Name in kebab-case, such as weather' },
    kind: { type: 'enum', options: [...kinds], default: 'plugin', description: 'What it is' },
    description: { type: 'string', valueHint: 'text', default: '', description: 'One sentence for its README' },
    path: { type: 'string', valueHint: 'folder', description: 'Where to make it (default: <home>/plugins)' },
    ...homeArgs,
  },
  examples: [
    ['svc plugin new weather', 'a plugin in the home'],
    ['svc plugin new matrix2 --kind channel --path ~/work', 'a channel in a folder of your own'],
  ],
  async run(args) {
    if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(args.name) || args.name.length > 48)
      throw new Failure(exits.usage, `"${args.name}" is no name of a plugin`, 'write kebab-case, such as my-plugin')
    const { kind } = args
    const parent = args.path === undefined ? join(locateHome(args).home, 'plugins') : resolve(args.path)
    const name = pluginName({ kind, name: args.name })
    const folder = join(parent, name)
    if (existsSync(folder)) throw new Failure(exits.failed, `${folder} exists already`, 'choose another name')
    const files = templateFiles({
      kind,
      name: args.name,
      description: args.description,
      types: typesConfig(),
      launcher: launcher(),
    })
    await make(parent, folder, files)
    const isLive = args.path === undefined && (await hasDaemon(args))
    if (args.json) printJson({ name, path: folder, files: [...files.keys()].filter((file) => file !== LAUNCHER) })
    else print(report({ name, folder, isInHome: args.path === undefined, isLive }))
    return exits.ok
  },
})

/** In one step: a daemon that watches the folder never sees half of it. */
async function make(parent: string, folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  const staged = join(parent, `.staging-${crypto.randomUUID()}`)
  await mkdir(staged, { recursive: true })
  try {
    await writeFiles(staged, files)
    await rename(staged, folder)
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
}

interface Made {
  readonly name: string
  readonly folder: string
  readonly isInHome: boolean
  readonly isLive: boolean
}
function report({ name, folder, isInHome, isLive }: Made): string {
  const next = isLive
    ? `The running daemon loads it now, and again each time a file is saved: ${commandLine(`plugin info ${name}`)}`
    : isInHome
      ? `The daemon loads it at its next start, and again each time a file is saved: ${commandLine('start')}`
      : `${commandLine(`plugin add ${folder}`)} installs it; ${commandLine(`plugin doctor ${folder}`)} checks it`
  return `plugin "${name}" made in ${folder}\n${next}`
}
