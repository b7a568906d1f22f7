import { readFile } from 'node:fs/promises'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { publicModules } from '../../core/build/declarations.ts'
import { builtPackage } from './built-package.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))

/** The folder with the declarations of the sources as they are now. */
export async function buildDeclarations(): Promise<string> {
  return join(await builtPackage(), 'dist/types')
}

/** The files a public module is made of, relative to the folder of the declarations; its own file is the first. */
export async function reachableFiles(folder: string, module: string): Promise<readonly string[]> {
  const source = (await publicModules(repository)).get(module)
  if (source === undefined) throw new Error(`package.json exports no svc/${module}`)
  const found = new Set<string>()
  const visit = async (file: string): Promise<void> => {
    if (found.has(file)) return
    found.add(file)
    const text = await readFile(join(folder, file), 'utf8')
    for (const specifier of importsOf(text)) await visit(resolveDeclaration(file, specifier))
  }
  const entry = normalize(source).replace(/\.ts$/, '.d.ts')
  await visit(entry)
  const [first = entry, ...others] = found
  return [first, ...others.toSorted()]
}

const importsOf = (text: string): readonly string[] =>
  [...text.matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g)].map(([, specifier = '']) => specifier)

/** The declaration file that a relative import names. */
export function resolveDeclaration(file: string, specifier: string): string {
  return relative(repository, join(repository, dirname(file), specifier)).replace(/\.tsx?$/, '.d.ts')
}
