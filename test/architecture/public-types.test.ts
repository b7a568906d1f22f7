import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { buildDeclarations, reachableFiles } from '../support/declarations.ts'

const modules = ['sdk', 'cli', 'channels', 'providers', 'testing']
const renewal = 'npx vitest run --config test/vitest.config.ts test/architecture/public-types.test.ts -u'

/** What a compiler of a plugin sees; comments may change freely. */
const stripComments = (text: string): string =>
  text
    .replaceAll(/^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm, '')
    .replaceAll(/^[ \t]*\/\/.*\n/gm, '')
    .trim()

/** The declarations of a module and of what it names. Files of `svc/sdk` are in its report alone. */
async function reportOf(module: string): Promise<string> {
  const folder = await buildDeclarations()
  const shared = module === 'sdk' ? [] : await reachableFiles(folder, 'sdk')
  const files = (await reachableFiles(folder, module)).filter((file) => !shared.includes(file))
  const sections = await Promise.all(
    files.map(
      async (file) => `## ${file}\n\n\`\`\`ts\n${stripComments(await readFile(join(folder, file), 'utf8'))}\n\`\`\`\n`,
    ),
  )
  return `# The types of svc/${module}

A change here is a change of the interface of plugins: raise \`API_VERSION\` where an author has to know of it.
Renew this file with \`${renewal}\`.

${sections.join('\n')}`
}

describe('the public types are those of the report', () => {
  it.each(modules)('svc/%s', async (module) => {
    await expect(
      await reportOf(module),
      `the types of svc/${module} changed; where that is meant, renew the report: ${renewal}`,
    ).toMatchFileSnapshot(`public-types/${module}.md`)
  })
})
