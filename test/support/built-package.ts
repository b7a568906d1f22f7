import { execFile } from 'node:child_process'
import { copyFile, cp, mkdir, readFile, symlink } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { hashSources } from '../../core/build/sources.ts'
import { cachedBuild } from './cached-build.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const dist = join(repository, 'dist')

/**
 * A folder with `package.json` and `dist` of the sources as they are now. The build runs once for each state of the
 * sources, whichever test asks first; `dist/` is taken where it was built from them.
 */
export function builtPackage(): Promise<string> {
  return (built ??= hashSources(repository).then((key) => cachedBuild('package', key, (folder) => build(folder, key))))
}
let built: Promise<string> | undefined

const { NODE_COMPILE_CACHE } = process.env
/**
 * For the environment of a command: compiled code of all tests, which halves the time of a start. The home of a test
 * has none yet.
 */
export const compiledCode: NodeJS.ProcessEnv = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }

export interface BuiltCommand {
  /** The file of the command. A daemon starts from it in a quarter of the time that it takes from source. */
  readonly file: string
  /** A `PATH` that leads to it by its name, as after an installation. */
  readonly path: string
}
export async function builtCommand(): Promise<BuiltCommand> {
  const folder = await builtPackage()
  return {
    file: join(folder, 'dist/svc.js'),
    path: [join(folder, 'bin'), process.env['PATH']].join(delimiter),
  }
}

async function build(folder: string, key: string): Promise<void> {
  await copyFile(join(repository, 'package.json'), join(folder, 'package.json'))
  await mkdir(join(folder, 'bin'))
  // Where an installation has its packages: processes of plugins read them there.
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  // The first agent of a home is made from one of them.
  await symlink(join(repository, 'templates'), join(folder, 'templates'))
  await symlink(join(repository, 'hands'), join(folder, 'hands'))
  await symlink('../dist/svc.js', join(folder, 'bin/svc'))
  if (await isDistOf(key)) await cp(dist, join(folder, 'dist'), { recursive: true })
  else await promisify(execFile)(process.execPath, [join(repository, 'core/build/build.ts'), join(folder, 'dist')])
}

/** Whether `dist/` is of the sources as they are now. */
export async function isDistCurrent(): Promise<boolean> {
  return await isDistOf(await hashSources(repository))
}
async function isDistOf(key: string): Promise<boolean> {
  return (await isBuiltFrom(key)) && (await hasNoOlderChunks())
}
async function isBuiltFrom(key: string): Promise<boolean> {
  const text = await readFile(join(dist, 'build.json'), 'utf8').catch(() => '{}' /* nothing was built */)
  return (JSON.parse(text) as { readonly sources?: string }).sources === key
}
async function hasNoOlderChunks(): Promise<boolean> {
  return (await readFile(join(dist, '.npmignore'), 'utf8').catch(() => '' /* the first build */)) === ''
}
