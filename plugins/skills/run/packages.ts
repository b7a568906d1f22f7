import { mkdir, symlink } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'

/**
 * Puts packages of svc where a program in the folder imports them from. Their own folders, which the program has to be
 * able to read. Rejects for one that is not installed.
 */
export async function linkPackages(names: readonly string[], folder: string): Promise<readonly string[]> {
  if (names.length === 0) return []
  await mkdir(join(folder, 'node_modules'), { recursive: true })
  return await Promise.all(
    names.map(async (name) => {
      const manifest = findPackageJSON(name, import.meta.url)
      if (manifest === undefined) throw new Error(`the package ${name} is missing: install svc again`)
      await symlink(dirname(manifest), join(folder, 'node_modules', name))
      return dirname(manifest)
    }),
  )
}
