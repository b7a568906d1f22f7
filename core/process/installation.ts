import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { readOwnJson } from '../schema/nesting.ts'

export interface Build {
  readonly version: string
  readonly buildDate: string
  readonly gitSha: string
}

const Info = v.object({
  version: v.string(),
  buildDate: v.optional(v.string(), 'dev'),
  gitSha: v.optional(v.string(), 'unknown'),
})

/** The build of this daemon. When run from source: the version of `package.json` and `dev`. */
export function readBuild(): Build {
  // Built code is in dist/ or dist/core/, source code in core/process/.
  for (const place of ['./build.json', '../build.json', '../../package.json']) {
    let text: string
    try {
      text = readFileSync(new URL(place, import.meta.url), 'utf8')
    } catch {
      continue /* not this layout */
    }
    return v.parse(Info, readOwnJson(text))
  }
  throw new Error('the installation is incomplete: neither build.json nor package.json was found')
}

/**
 * Folders that the code of this installation and its packages are loaded from. `shallow`: only files directly in the
 * folder.
 */
export function installedFolders(): readonly { readonly path: string; readonly shallow: boolean }[] {
  const here = dirname(fileURLToPath(import.meta.url))
  // Built code is in dist/ or dist/core/, source code in core/process/.
  const above = [here, dirname(here), dirname(dirname(here))]
  const root = above.find((folder) => existsSync(join(folder, 'package.json'))) ?? here
  const packages = dirname(root)
  return [
    { path: root, shallow: true },
    ...['dist', 'core', 'plugins', 'adapters', 'hands', 'skills', 'templates', 'playground', 'node_modules'].map(
      (name) => ({ path: join(root, name), shallow: false }),
    ),
    { path: here, shallow: false },
    ...(basename(packages) === 'node_modules' ? [{ path: packages, shallow: false }] : []),
  ]
}

/** The folder of the skills that come with svc, which need not exist. */
export function bundledSkills(): string {
  const [root] = installedFolders()
  return join(root?.path ?? '.', 'skills')
}

/** The folder of the templates that come with svc. */
export function bundledTemplates(): string {
  const [root] = installedFolders()
  return join(root?.path ?? '.', 'templates')
}

/** The folder of the hands that come with svc, which need not exist. */
export function bundledHands(): string {
  const [root] = installedFolders()
  return join(root?.path ?? '.', 'hands')
}

/** The `tsconfig.json` with the types of this installation, which those of plugins extend. */
export function typesConfig(): string {
  const [root] = installedFolders()
  return join(root?.path ?? '.', 'dist', 'types', 'tsconfig.json')
}
