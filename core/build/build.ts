/**
 * Makes `dist/` from the sources: the command and the modules plugins share as one bundle with common chunks, one
 * self-contained folder per built-in plugin, the chat page, and the repository's own `svc.config.ts` compiled.
 */
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'rolldown'
import type { InputOptions, Plugin } from 'rolldown'
import { buildPage } from '../../plugins/webchat/build.ts'
import { toName } from '../host/loader.ts'
import { escapeCharacters } from './ascii.ts'
import { catalogText } from './catalog.ts'
import { gitSha } from './git.ts'
import { keepChunks } from './keep.ts'
import { hashSources } from './sources.ts'
import { buildTypes, publicModules } from './declarations.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Where the build goes: a folder that the caller names, else `dist/`. */
const dist = resolve(root, process.argv[2] ?? 'dist')

/** Resolved by Node when they are needed: modules that must exist once, native code, and what most runs never load. */
const packages = [
  'valibot',
  '@valibot/to-json-schema',
  'better-sqlite3',
  'c12',
  'listhen',
  'jiti',
  'ofetch',
  'pg',
  'busboy',
  'jose',
  /^@smithy\//,
  'yauzl',
  'yazl',
  'croner',
  'ws',
  'mqtt',
  /^@xmpp\//,
  'imapflow',
  'nodemailer',
  'postal-mime',
  '@whiskeysockets/baileys',
  /^@a2a-js\//,
]

/** Modules that plugins share with the host. */
const shared = {
  'svc/sdk': 'core/sdk.ts',
  'svc/internal': 'core/internal.ts',
  'svc/cli': 'core/cli/sdk.ts',
  'svc/testing': 'core/testing.ts',
  'svc/channels': 'adapters/channels/contract.ts',
  'svc/providers': 'adapters/providers/contract.ts',
}
const external = [/^svc\//, ...packages]

const input = (entries: Record<string, string>): InputOptions => ({
  input: entries,
  platform: 'node',
  external,
  resolve: { conditionNames: ['node', 'import', 'default'] },
  logLevel: 'warn',
})

async function folders(parent: string): Promise<string[]> {
  const entries = await readdir(join(root, parent), { withFileTypes: true })
  return entries
    .filter((entry) => entry.isDirectory() && existsSync(join(root, parent, entry.name, 'index.ts')))
    .map((entry) => entry.name)
}

/** Notes what the modules of an entry import when they are evaluated, as opposed to what they may import later. */
function closures(entries: Readonly<Record<string, readonly string[]>>): {
  readonly plugin: Plugin
  has(name: string, id: string): boolean
} {
  const found = new Map<string, Set<string>>()
  return {
    has: (name, id) => found.get(name)?.has(id) ?? false,
    plugin: {
      name: 'closures',
      buildEnd() {
        const taken = new Set<string>()
        for (const [name, modules] of Object.entries(entries)) {
          const closure = new Set<string>()
          const visit = (id: string): void => {
            if (taken.has(id)) return
            taken.add(id)
            closure.add(id)
            for (const imported of this.getModuleInfo(id)?.importedIds ?? []) visit(imported)
          }
          for (const module of modules) visit(join(root, module))
          found.set(name, closure)
        }
      },
    },
  }
}

/** Replaces the search for built-in commands by one module that imports every `cli.ts`. */
function builtInCommands(plugins: readonly string[]): Plugin {
  const files = plugins.map((name) => join(root, 'plugins', name, 'cli.ts')).filter((file) => existsSync(file))
  const imports = files.map((file, index) => `import cli${index} from ${JSON.stringify(file)}`)
  const list = files.map((_, index) => `cli${index}`)
  const code = [...imports, `export const loadBuiltIns = async () => [${list.join(', ')}]`].join('\n')
  const module = join(root, 'core/cli/built-ins.ts')
  return { name: 'built-in-commands', load: (id) => (id === module ? code : null) }
}

/**
 * The commands of plugins are built together with those of the core: they share its modules, and each is loaded alone.
 */
async function buildCore(plugins: readonly string[], out: string): Promise<void> {
  // A file costs about a millisecond of a start: what every command needs is one, what the daemon needs beyond that
  // another.
  const groups = closures({
    command: [
      'core/sdk.ts',
      'core/internal.ts',
      'core/cli/run.ts',
      'core/cli/command.ts',
      'core/cli/plugin-cli.ts',
      'core/cli/shipped-config.ts',
      'core/host/folders.ts',
      'core/cli/output.ts',
      'core/process/installation.ts',
    ],
    daemon: ['core/cli/start.ts', 'core/cli/settings.ts', 'core/cli/serve.ts'],
  })
  const entries = Object.entries(shared).map(([name, file]) => [name.slice('svc/'.length), join(root, file)] as const)
  const alias = Object.fromEntries(Object.entries(shared).map(([name, file]) => [name, join(root, file)]))
  await build({
    ...input({ svc: join(root, 'core/cli/main.ts'), ...Object.fromEntries(entries) }),
    // What the host hands to plugins it imports by its public name; the commands of plugins get the modules themselves.
    external: (id, importer) =>
      packages.some((name) => (typeof name === 'string' ? name === id : name.test(id))) ||
      (id.startsWith('svc/') && !importer?.startsWith(join(root, 'plugins'))),
    resolve: { conditionNames: ['node', 'import', 'default'], alias },
    // A list of commands that needs one name of `svc/cli` must not evaluate what the other names need.
    treeshake: { moduleSideEffects: [{ test: /[\\/]core[\\/]cli[\\/]sdk\.ts$/, sideEffects: false }] },
    plugins: [groups.plugin, builtInCommands(plugins)],
    output: {
      codeSplitting: {
        groups: ['command', 'daemon'].map((name) => ({ name, test: (id: string) => groups.has(name, id) })),
      },
      dir: out,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'core/[name]-[hash].js',
      minify: 'dce-only',
      comments: false,
      banner: (chunk) => (chunk.name === 'svc' && chunk.isEntry ? '#!/usr/bin/env node' : ''),
    },
  })
  await chmod(join(out, 'svc.js'), 0o755)
}

/** `processes/<name>.ts` of each plugin runs in a process or thread of its own and shares no module with the daemon. */
async function buildProcesses(plugins: Iterable<string>, out: string): Promise<void> {
  const entries: Record<string, string> = { 'core-plugin': join(root, 'core/host/isolation/process.ts') }
  for (const plugin of plugins) {
    const folder = join(root, 'plugins', plugin, 'processes')
    if (!existsSync(folder)) continue
    for (const file of await readdir(folder)) entries[`${plugin}-${file.replace(/\.ts$/, '')}`] = join(folder, file)
  }
  await build({
    ...input(entries),
    output: {
      dir: join(out, 'processes'),
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'core/[name]-[hash].js',
      minify: 'dce-only',
      comments: false,
    },
  })
}

async function buildPlugin(source: string, folder: string): Promise<void> {
  const pages = join(root, source, 'pages')
  if (existsSync(pages)) await cp(pages, join(folder, 'pages'), { recursive: true })
  await build({
    ...input({ index: join(root, source, 'index.ts') }),
    output: {
      dir: folder,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
      minify: 'dce-only',
      comments: false,
    },
  })
}

/**
 * The probes of the security systems run one after the other: what each needs by itself is one file too, which costs
 * less memory than twenty.
 */
const probe = /[\\/]plugins[\\/][^\\/]+[\\/](?:probes[\\/][^\\/]+|(?:\w+-)?probe)\.ts$/

/** The same plugins once more in one file, which is what a start reads; the folders are what a reload reads. */
async function buildTogether(sources: ReadonlyMap<string, string>, out: string): Promise<void> {
  // `svc/contracts/…` is the module that the built-ins themselves use.
  const contracts = [...(await publicModules(root))].filter(([name]) => name.startsWith('contracts/'))
  const id = '\0built-ins'
  const code = [...sources]
    .map(
      ([name, source]) =>
        `export { default as ${toName(name)} } from ${JSON.stringify(join(root, source, 'index.ts'))}`,
    )
    .join('\n')
  const entry: Plugin = {
    name: 'built-ins',
    resolveId: (source) => (source === id ? id : null),
    load: (loaded) => (loaded === id ? code : null),
  }
  const options = input({
    plugins: id,
    ...Object.fromEntries(contracts.map(([name, source]) => [name, join(root, source)])),
  })
  // What a plugin needs at once stays in one file, although other parts of it, which are imported later, need it too.
  const groups = closures({ 'built-ins': [...sources.values()].map((source) => join(source, 'index.ts')) })
  await build({
    ...options,
    plugins: [entry, groups.plugin],
    output: {
      codeSplitting: {
        groups: [
          { name: 'built-ins', test: (module: string) => groups.has('built-ins', module) },
          { name: 'probes', test: probe },
        ],
      },
      dir: out,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'core/[name]-[hash].js',
      minify: 'dce-only',
      comments: false,
    },
  })
}

async function buildConfig(out: string): Promise<void> {
  const file = join(root, 'svc.config.ts')
  if (!existsSync(file)) return
  await build({ ...input({ 'svc.config': file }), output: { dir: out, format: 'esm', entryFileNames: '[name].js' } })
}

/** Everything that runs, and the data it reads. */
async function buildCode(out: string): Promise<void> {
  // What changes while it is read is no part of it.
  const hash = await hashSources(root)
  const plugins = await folders('plugins')
  await buildCore(plugins, out)
  await buildProcesses(plugins, out)
  const sources = new Map(plugins.map((name) => [name, join('plugins', name)]))
  for (const kind of ['providers', 'channels'])
    for (const name of await folders(join('adapters', kind)))
      sources.set(`${kind.slice(0, -1)}-${name}`, join('adapters', kind, name))
  for (const [name, source] of sources) await buildPlugin(source, join(out, 'plugins', name))
  await buildTogether(sources, out)
  await buildConfig(out)
  await escapeCharacters(out)
  await buildPage({ outDir: join(out, 'webchat') })
  await mkdir(join(out, 'catalog'))
  await writeFile(join(out, 'catalog', 'models.json'), await catalogText())
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  const info = { version, buildDate: new Date().toISOString(), gitSha: await gitSha(root), sources: hash }
  await writeFile(join(out, 'build.json'), `${JSON.stringify(info, null, 2)}\n`)
}

async function main(): Promise<void> {
  const started = performance.now()
  // Built beside the old tree and swapped in, so that a daemon that is starting never sees half of it.
  const out = `${dist}.${process.pid}`
  await rm(out, { recursive: true, force: true })
  await mkdir(out, { recursive: true })
  try {
    await Promise.all([buildCode(out), buildTypes(root, join(out, 'types'))])
    await keepChunks(dist, out, Date.now())
    await rm(dist, { recursive: true, force: true })
    await rename(out, dist)
  } finally {
    await rm(out, { recursive: true, force: true })
  }
  console.log(`built ${relative(process.cwd(), dist) || '.'} in ${Math.round(performance.now() - started)} ms`)
}

await main()
