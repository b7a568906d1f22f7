import { join } from 'node:path'
import { mkdir, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { runHere } from '../cli/here.ts'

// A setup that fails names the file, line and column in the source of the plugin.

let host: TestHost
beforeAll(async () => {
  host = await startHost({
    plugins: ['audit', 'plugin-admin'],
    memory: true,
    config: { plugins: { watch: false, apart: { isolation: 'worker' }, refused: { isolation: 'worker' } } },
  })
})
afterAll(() => host[Symbol.asyncDispose]())

const source = (name: string, setup: string): string => `import * as v from 'valibot'
import { definePlugin, defineRoute } from 'svc/sdk'
import { rain } from './rain.ts'
interface Cloud { readonly size: number }
export default definePlugin({
  name: '${name}', version: '1.0.0', config: v.object({}), uses: { routes: ['/api/${name}'] },
  async setup({ routes }) {
    await Promise.resolve()
    ${setup}
    return {}
  },
})
`
const rain = `import * as v from 'valibot'
export const rain = (): number => {
  const cloud = undefined as unknown as { readonly size: number } | undefined; return cloud!.size
}
`
const route = (name: string) =>
  `routes.add(defineRoute({ method: 'GET', path: '/api/${name}', summary: 'x', auth: 'bearer', effect: 'read',` +
  ' returns: v.object({}), handle: () => ({}) } as never))'

/** Where the text begins, as an editor shows it. */
function place(text: string, searched: string): string {
  const before = text.slice(0, text.indexOf(searched)).split('\n')
  return `${before.length}:${(before.at(-1) ?? '').length + 1}`
}

const cases: readonly (readonly [name: string, setup: string, file: string, searched: string])[] = [
  ['thrown', `const size: number | undefined = 3; throw new Error(\`cloudy \${size}\`)`, 'index.ts', 'new Error'],
  ['imported', 'rain()', 'rain.ts', 'size\n'],
  ['wrong', route('wrong'), 'index.ts', 'add(defineRoute'],
  ['apart', 'rain()', 'rain.ts', 'size\n'],
  ['refused', route('elsewhere').replace("effect: 'read'", "effect: 'read', cost: 1"), 'index.ts', 'add(defineRoute'],
]

describe('a setup that fails', () => {
  it.each(cases)('%s: names the place in status, log, API and terminal', async (name, setup, file, searched) => {
    const folder = join(host.home, 'plugins', name)
    const files: Readonly<Record<string, string>> = { 'index.ts': source(name, setup), 'rain.ts': rain }
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const [each, text] of Object.entries(files)) await writeFile(join(folder, each), text)
    const found = `(${join(folder, file)}:${place(files[file] ?? '', searched)})`
    await expect(host.app.host.load(folder)).rejects.toThrow(found)
    const { body } = await host.json('GET', `/api/plugins/${name}`)
    expect(body).toMatchObject({ state: 'failed', error: expect.stringContaining(`setup failed: `) as string })
    expect(body.error).toContain(found)
    expect(host.log.join('\n')).toContain(found)
    expect((await runHere(['plugin', 'info', name, '--url', host.url])).stdout).toContain(found)
  })

  it('names it when the code before goes on', async () => {
    const folder = join(host.home, 'plugins', 'edited')
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(join(folder, 'rain.ts'), rain)
    await writeFile(join(folder, 'index.ts'), source('edited', ''))
    await host.app.host.load(folder)
    const text = source('edited', 'const size: number = 3; if (size) rain()')
    await writeFile(join(folder, 'index.ts'), text)
    const found = `the code before goes on: setup failed: Cannot read properties of undefined (reading 'size') (${folder}`
    await expect(host.app.host.reload('edited')).rejects.toThrow(`${found}/rain.ts:${place(rain, 'size\n')})`)
  })
})
