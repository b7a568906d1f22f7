import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildDeclarations } from './declarations.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))

/**
 * A folder with `node_modules/svc` as `npm install svc` leaves it, as far as a compiler looks: package.json and
 * declarations.
 */
export interface InstalledPackage extends AsyncDisposable {
  readonly folder: string
  /** The folder of the package. */
  readonly root: string
}
export async function installPackage(): Promise<InstalledPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-installed-'))
  const packages = join(folder, 'node_modules')
  const root = join(packages, 'svc')
  await mkdir(root, { recursive: true })
  await symlink(join(repository, 'package.json'), join(root, 'package.json'))
  await cp(await buildDeclarations(), join(root, 'dist/types'), { recursive: true })
  for (const name of await readdir(join(repository, 'node_modules')))
    if (!name.startsWith('.')) await symlink(join(repository, 'node_modules', name), join(packages, name))
  return { folder, root, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

/** What the compiler says of a project, line by line; nothing when it is sound. */
export function compile(project: string): Promise<readonly string[]> {
  const tsc = join(repository, 'node_modules/typescript/bin/tsc')
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [tsc, '--project', project, '--pretty', 'false'],
      { cwd: dirname(project) },
      (_error, stdout) => resolve(stdout.split('\n').filter((line) => line.trim() !== '')),
    )
  })
}
