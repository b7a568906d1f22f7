import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cachedBuild } from './cached-build.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))

/**
 * A folder with `package.json` and `dist` of the sources as they are now. The build runs once for each state of the
 * sources, whichever test asks first.
 */
export function builtPackage(): Promise<string> {
  return (built ??= hashSources().then((key) => cachedBuild('package', key, build)))
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

async function build(folder: string): Promise<void> {
  await copyFile(join(repository, 'package.json'), join(folder, 'package.json'))
  await mkdir(join(folder, 'bin'))
  // Where an installation has its packages: processes of plugins read them there.
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  // The first agent of a home is made from one of them.
  await symlink(join(repository, 'templates'), join(folder, 'templates'))
  await symlink('../dist/svc.js', join(folder, 'bin/svc'))
  await promisify(execFile)(process.execPath, [join(repository, 'core/build/build.ts'), join(folder, 'dist')])
}

async function hashSources(): Promise<string> {
  const hash = createHash('sha256')
  for (const folder of ['core', 'plugins', 'adapters']) {
    const entries = await readdir(join(repository, folder), { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    for (const file of files.toSorted()) hash.update(`${file}\0`).update(await readFile(file))
  }
  for (const name of ['package.json', 'package-lock.json', 'tsconfig.json', 'svc.config.ts'])
    hash.update(await readFile(join(repository, name)))
  return hash.digest('hex').slice(0, 32)
}
