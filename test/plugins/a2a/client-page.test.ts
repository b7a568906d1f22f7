import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { CheckResult } from '../../../core/cli/plugin-cli.ts'
import { createDaemonClient } from '../../../core/net/daemon-client.ts'
import check from '../../../plugins/a2a/cli/check.ts'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'
import { cardOf, startRemoteAgent } from './remote-agent.ts'
import type { RemoteAgentServer } from './remote-agent.ts'

let browser: Browser
let home: string
let host: TestHost
let remote: RemoteAgentServer
beforeAll(async () => {
  ;[browser, remote, home] = await Promise.all([
    launchBrowser(),
    startRemoteAgent('1.0'),
    mkdtemp(join(tmpdir(), 'svc-a2a-')),
  ])
  host = await startHost({
    home,
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'queue', 'a2a'],
    config: { plugins: { watch: false }, outbound: { allow: ['127.0.0.1'] }, a2a: { poll_min_ms: 10 } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await remote?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['a2a', ...args, '--home', home])

it('the page finds an agent, shows its card, trusts it and sends it a message', async () => {
  remote.card = cardOf('1.0', remote.origin, { description: '<b>Repeats</b> what it hears.' })
  await using tab = await openTab(browser, host.url, { path: '/pages/a2a/agents/agents.html' })
  const { page } = tab
  await page.getByRole('button', { name: 'Find an agent' }).click()
  await page.getByLabel('Address of the agent').fill(remote.origin)
  await page.getByRole('button', { name: 'Look' }).click()
  const card = page.getByRole('region', { name: 'Echo 1.0', exact: true })
  await card.getByText('<b>Repeats</b> what it hears.').waitFor()
  await card.getByRole('button', { name: 'Trust: Echo 1.0' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Trust' }).click()
  await page.getByText('“Echo 1.0” is trusted.').waitFor()
  await card.getByRole('button', { name: 'Send: Echo 1.0' }).click()
  await page.getByLabel('Message', { exact: true }).fill('hello')
  await page.getByRole('dialog').getByRole('button', { name: 'Send' }).click()
  await page.getByText('echo: hello').waitFor()
  remote.card = cardOf('1.0', remote.origin, { skills: [] })
  await host.json('POST', '/api/a2a/discover', { url: remote.origin })
  await card.getByText('skills changed from').waitFor()
  await card.getByRole('button', { name: 'Remove: Echo 1.0' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No agents elsewhere are known yet.').waitFor()
  expect(tab.complaints).toEqual([])
})

it('svc a2a finds, trusts, lists, asks and forgets an agent', async () => {
  remote.card = cardOf('1.0', remote.origin)
  expect((await svc('list')).stdout).toContain('No agents elsewhere are known.')
  const found = await svc('discover', remote.origin, '--name', 'echo')
  expect([found.code, found.stdout]).toEqual([
    0,
    expect.stringMatching(/messages go to +http.*\nsignature|Trust it with/s),
  ])
  expect((await svc('send', 'echo', 'too early')).code).not.toBe(0)
  const daemon = createDaemonClient({ url: host.url })
  const doctor = (): Promise<CheckResult> => check({ config: host.announced, env: {}, daemon })
  expect(await doctor()).toMatchObject({
    found: 'not trusted: echo',
    advice: expect.stringMatching(/^`svc a2a discover http.*`svc a2a approve /),
  })
  expect((await svc('approve', 'echo')).stdout).toMatch(/state +trusted\n/)
  expect(await doctor()).toEqual({ state: 'ok', found: '1 known, all trusted' })
  expect((await svc('list')).stdout).toMatch(/\necho +trusted +1 +http/)
  const sent = await svc('send', 'echo', 'hello')
  expect(sent.stdout).toMatch(/^echo: completed \(task [^)]+\)\n\necho: hello\n$/)
  const id = /\(task ([^,)]+)/.exec(sent.stdout)?.[1] ?? ''
  expect((await svc('status', id)).stdout).toBe(sent.stdout)
  const failed = await svc('send', 'echo', 'fail')
  expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('I cannot do that')])
  expect((await svc('remove', 'echo')).stdout).toBe('echo is forgotten.\n')
  expect((await svc('approve', 'echo')).code).toBe(4)
})
