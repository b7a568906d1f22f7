/**
 * Makes `dist/types`: the declarations of the modules that `package.json` exports, and the `tsconfig.json` a plugin
 * extends.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/**
 * The source of every public module, relative to the repository, by its path below `svc`: `sdk`, `contracts/kv`.
 */
export async function publicModules(root: string): Promise<ReadonlyMap<string, string>> {
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    exports: Readonly<Record<string, string | { readonly 'svc-source'?: string }>>
  }
  const found = new Map<string, string>()
  for (const [path, target] of Object.entries(exports)) {
    const source = typeof target === 'string' ? undefined : target['svc-source']
    if (source === undefined) continue
    const name = path.slice('./'.length)
    for (const value of await expand(root, source)) found.set(name.replace('*', value), source.replace('*', value))
  }
  return found
}

/** What the `*` of a path may stand for; the empty text when it has none. */
async function expand(root: string, source: string): Promise<readonly string[]> {
  const [folder = '', rest] = source.split('*')
  if (rest === undefined) return ['']
  const names = await readdir(join(root, folder))
  return names.filter((name) => existsSync(join(root, `${folder}${name}${rest}`))).sort()
}

export async function buildTypes(root: string, out: string): Promise<void> {
  const modules = await publicModules(root)
  await mkdir(out, { recursive: true })
  const project = join(out, 'tsconfig.json')
  await writeFile(project, JSON.stringify(compilerConfig(root, out, [...modules.values()])))
  await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--project', project])
  const entries = [...modules.values()].map((source) => join(out, source.replace(/\.ts$/, '.d.ts')))
  await removeUnreachable(out, entries)
  await writeFile(project, `${JSON.stringify(authorConfig(modules), null, 2)}\n`)
}

function compilerConfig(root: string, out: string, sources: readonly string[]): object {
  return {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      rootDir: root,
      outDir: out,
      typeRoots: [join(root, 'node_modules/@types')],
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
    },
    include: [],
    files: sources.map((source) => join(root, source)),
  }
}

async function run(command: string, args: readonly string[]): Promise<void> {
  try {
    await promisify(execFile)(command, args)
  } catch (error) {
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : ''
    throw new Error(`the declarations cannot be made:\n${output}`, { cause: error })
  }
}

/** The compiler writes a declaration for every module it reads; a plugin sees those that a public one names. */
async function removeUnreachable(out: string, entries: readonly string[]): Promise<void> {
  const reachable = new Set<string>()
  const visit = async (file: string): Promise<void> => {
    if (reachable.has(file)) return
    reachable.add(file)
    for (const [, specifier = ''] of (await readFile(file, 'utf8')).matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g))
      await visit(join(dirname(file), specifier).replace(/\.tsx?$/, '.d.ts'))
  }
  for (const entry of entries) await visit(entry)
  for (const entry of await readdir(out, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (entry.isFile() && !reachable.has(file)) await rm(file)
  }
}

/**
 * For a plugin in a folder without packages, such as `<home>/plugins`: it finds `svc/…` and valibot of this
 * installation.
 */
function authorConfig(modules: ReadonlyMap<string, string>): object {
  const paths = [...modules].map(([name, source]) => [`svc/${name}`, [source.replace(/\.ts$/, '.d.ts')]])
  return {
    compilerOptions: {
      target: 'esnext',
      module: 'nodenext',
      lib: ['esnext', 'dom', 'dom.iterable', 'dom.asynciterable'],
      types: [],
      strict: true,
      allowImportingTsExtensions: true,
      verbatimModuleSyntax: true,
      noEmit: true,
      skipLibCheck: true,
      // Its packages lie in the folder of the installation, or beside it.
      paths: {
        ...Object.fromEntries(paths),
        valibot: ['../../node_modules', '../../..'].map((packages) => `${packages}/valibot/dist/index.d.mts`),
      },
    },
  }
}
