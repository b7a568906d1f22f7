import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { browserTools } from '../../../plugins/browser/tools.ts'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { OPEN, openSite } from './stage.ts'
import type { Site } from './stage.ts'

let home: string
let host: TestHost
let site: Site
let agent: string
const toolCaller = fileURLToPath(new URL('../../fixtures/tool-caller', import.meta.url))
const plugins = ['providers/builtin', ...turnPlugins, 'files', 'browser', 'system', toolCaller]
const start = (browser: Readonly<Record<string, unknown>>): Promise<TestHost> =>
  startHost({ home, plugins, config: { outbound: { allow: [OPEN] }, plugins: { browser } } })
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-browser-cli-'))
  site = await openSite(OPEN, { '/': () => '<title>Tides\u001B[31m</title>' })
  host = await start({})
  const manifest_toml = 'name = "reader"\n[capabilities]\ntools = ["*"]\nnetwork = ["*"]\n'
  agent = (await host.json('POST', '/api/agents', { manifest_toml })).body.agent_id
})
afterAll(async () => {
  await host?.[Symbol.asyncDispose]()
  await site?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])
const navigate = async () =>
  (await host.json('POST', '/test/tools/browser_navigate', { agent_id: agent, args: { url: site.url } })).body

const doctor = async () => (await svc('doctor', '--json')).stdout

it('list, close and doctor know what is open', async () => {
  expect((await svc('browser', 'list')).stdout).toBe('No browser is open.\n')
  expect(await svc('browser', 'close', 'reader')).toMatchObject({ code: 4 })
  expect(await navigate()).toMatchObject({ failed: false })
  expect((await svc('browser', 'list')).stdout).toMatch(/reader +http:\/\/127\.0\.0\.2:\d+\/ +Tides.* 2/)
  expect(await doctor()).toMatch(/chrom[^"]*, 1 open/)
  expect((await svc('browser', 'close', 'reader')).stdout).toBe('The browser of reader is closed\n')
  expect((await svc('browser', 'list')).stdout).toBe('No browser is open.\n')
})

it('a browser that nothing uses is closed', async () => {
  await host.stop()
  host = await start({ idle_timeout_secs: 1 })
  expect(await navigate()).toMatchObject({ failed: false })
  await eventually(() => expect(host.log.join('')).toContain('was closed: nothing used it for 1 s'))
  expect((await host.json('GET', '/api/browser/sessions')).body.sessions).toEqual([])
})

it('a Chromium that is not there is told to agents and to the operator', async () => {
  await host.stop()
  host = await start({ chromium_path: '/nowhere/chromium' })
  const problem = 'plugins.browser.chromium_path names /nowhere/chromium, where there is no program that can be started'
  expect(await navigate()).toEqual({ failed: true, text: problem })
  expect(await svc('browser', 'list')).toMatchObject({ stderr: expect.stringContaining(problem) })
  expect(await doctor()).toContain(problem)
})

it('what sends data is harmful in a turn that may follow injected instructions, and each time another thing', () => {
  const tools = browserTools(async () => Promise.reject(new Error('not called')), 30)
  const facts = (name: string, args: unknown) => {
    const tool = tools.find((each) => each.name === `browser_${name}`)
    return [tool?.risk, tool?.refuses, tool?.assess?.(args)]
  }
  for (const name of ['click', 'type', 'run_js'])
    expect(facts(name, {})).toMatchObject(['write', ['Secret', 'Pii'], { harm: 'high', standing: 'once' }])
  expect(facts('navigate', { url: 'https://a.test/b?c' })).toMatchObject([
    'read',
    ['Secret', 'Pii'],
    { intent: 'open a page of a.test', standing: { key: 'GET https://a.test' } },
  ])
  for (const { name, needs, labels } of tools)
    expect([name, needs, labels]).toEqual([name, 'network', name === 'browser_close' ? undefined : ['ExternalNetwork']])
})
