import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Source {
  readonly path: string
  readonly text: string
  readonly imports: readonly string[]
}

const statement = /(?:^|\n)\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s*)?['"]([^'"]+)['"]/g
const dynamic = /\bimport\(\s*(?:\/\*[^*]*\*\/\s*)?['"]([^'"]+)['"]/g
const builtin = /getBuiltinModule\(\s*['"]([^'"]+)['"]/g

/** Comments blanked out, so that prose about a primitive is not taken for its use. */
export function code(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, ' ').replaceAll(/(^|[^:'"`\\])\/\/.*$/gm, '$1')
}

/** Every TypeScript file below the folders, with what it imports. */
export function sources(...folders: readonly string[]): Source[] {
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
        .map((entry) => {
          const file = join(entry.parentPath, entry.name)
          const text = readFileSync(file, 'utf8')
          const bare = code(text)
          const imports = [...bare.matchAll(statement), ...bare.matchAll(dynamic), ...bare.matchAll(builtin)].map(
            (match) => match[1] ?? '',
          )
          return { path: relative(root, file), text, imports }
        }),
    )
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

/** A relative import as a path from the root; any other specifier as it stands. */
export function resolveImport(from: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier
  return relative(root, join(root, from, '..', specifier))
}
