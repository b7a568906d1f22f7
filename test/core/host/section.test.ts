import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createApp } from '../../../core/app.ts'
import type { App } from '../../../core/app.ts'
import { loadConfig } from '../../../core/config/load.ts'
import { createLog } from '../../../core/log/log.ts'

const plugin = `import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
export default definePlugin({ name: 'mine', version: '1.0.0', setup: () => ({}),
  config: v.object({
    greeting: v.optional(v.pipe(v.string(), v.minLength(1)), 'Hello'),
    times: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 1),
    inner: v.optional(v.object({ deep: v.optional(v.boolean(), false) }), {}),
  }) })
`
let home: string
let toml: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-section-'))
  toml = join(home, 'config.toml')
  await mkdir(join(home, 'plugins'))
  await writeFile(join(home, 'plugins', 'mine.ts'), plugin)
})
afterEach(() => rm(home, { recursive: true, force: true }))

async function start(text: string, strict = true): Promise<{ app: App; lines: readonly string[] } & AsyncDisposable> {
  await writeFile(toml, text)
  const lines: string[] = []
  const loaded = await loadConfig({ home, cwd: home, env: { SVC_PLUGINS__MINE__LOUD: 'yes' }, flags: {} })
  const app = await createApp({
    loaded,
    strict,
    builtIns: [],
    log: createLog({
      level: 'warn',
      colored: false,
      write: (line) => {
        lines.push(line)
      },
    }),
  })
  return { app, lines, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
}

it('a wrong value in the section of a plugin refuses the start with its place and what was expected', async () => {
  await expect(start('[plugins.mine]\ngreeting = "Hi"\ntimes = "often"\n')).rejects.toThrow(
    `${toml}:3: plugins.mine.times: expected a whole number of at least 1, found the text "often"`,
  )
})

it('the same costs only that plugin when the daemon starts anew', async () => {
  await using it = await start('[plugins.mine]\ntimes = "often"\n', false)
  expect(it.app.daemon.plugins()).toMatchObject([
    { name: 'mine', state: 'failed', error: expect.stringContaining(`${toml}:2: plugins.mine.times`) },
  ])
})

it('unknown keys, sections, plugins and folders are told with their place and the nearest name', async () => {
  const text = [
    '[plugins]',
    'disabled = ["nobody"]',
    'paths = ["./nowhere"]',
    '[plugins.mine]',
    'greting = "Hi"',
    'inner.deeep = true',
    '[plugins.mime]',
    'x = 1',
    '',
  ].join('\n')
  await using it = await start(text)
  const told = [
    `${toml}:5: unknown key "plugins.mine.greting" is ignored; did you mean "plugins.mine.greeting"?`,
    `${toml}:6: unknown key "plugins.mine.inner.deeep" is ignored; did you mean "plugins.mine.inner.deep"?`,
    'SVC_PLUGINS__MINE__LOUD: unknown key "plugins.mine.loud" is ignored',
    `${toml}:8: [plugins.mime] has no effect, there is no plugin "mime"; did you mean "mine"?`,
    `${toml}:2: plugins.disabled: there is no plugin "nobody"`,
    `${toml}:3: plugins.paths: ${join(home, 'nowhere')} does not exist`,
  ]
  expect(it.app.daemon.warnings()).toEqual(told)
  for (const warning of told) expect(it.lines.join('\n')).toContain(warning)
})
