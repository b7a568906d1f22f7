import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A temporary folder outside the repository, removed when disposed. */
export async function temporaryFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'svc-plugins-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

export interface PluginText {
  /** Further members of the definition, such as `requires: { a: defineService()('a') },`. */
  readonly members?: string
  /** The body of setup; `ctx` is the context. It must return what is provided. */
  readonly setup?: string
  /** Code before the definition. */
  readonly before?: string
}
/** The source of a small plugin. */
export function pluginText(name: string, { members = '', setup = 'return {}', before = '' }: PluginText = {}): string {
  return `import * as v from 'valibot'
import { definePlugin, defineRoute, defineService, defineSocket, defineTool, gate, notify, Refusal, transform } from 'svc/sdk'
${before}
export default definePlugin({
  name: '${name}', version: '1.0.0', config: v.object({}),
  ${members}
  async setup(ctx: any) {
    ${setup}
  },
})
`
}
/** A route that answers `{ text }`. */
export function routeText(path: string, text: string, before = ''): string {
  return `ctx.routes.add(defineRoute({ method: 'GET', path: '${path}', summary: 'A test', auth: 'public', effect: 'read', cost: 1, returns: v.object({ text: v.string() }),
      async handle({ signal }: any) { ${before}; return { text: ${JSON.stringify(text)} } } }))`
}

/** Writes the plugin the way editors do: beside the old file, then over it. */
export async function writePlugin(folder: string, text: string, file = 'index.ts'): Promise<string> {
  const target = join(folder, file)
  await mkdir(dirname(target), { recursive: true })
  await writeFile(`${target}~`, text)
  await rename(`${target}~`, target)
  return folder
}
