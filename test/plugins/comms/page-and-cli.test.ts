import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { FakeWebhook } from '../../support/platforms/webhook.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'

let browser: Browser
let platform: FakeWebhook
let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-comms-'))
  browser = await launchBrowser()
  platform = await FakeWebhook.start()
  host = await startHost({
    home,
    plugins: [
      ...turnPlugins,
      'webchat',
      'providers/builtin',
      'system',
      'delegation',
      'comms',
      'channels',
      'channels/webhook',
    ],
    config: {
      default_provider: 'builtin',
      channels: { webhook: { ...platform.config, agent_name: 'scout' } },
      plugins: { watch: false },
    },
  })
  const boss = 'name = "boss"\n[capabilities]\nagent_message = ["scout"]\n'
  for (const toml of [boss, 'name = "scout"\n']) await host.json('POST', '/api/agents', { manifest_toml: toml })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await platform?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['comms', ...args, '--home', home])

it('sends, lists and draws on the command line', async () => {
  expect((await svc('send', 'scout', 'echo found', '--from', 'boss')).stdout).toBe('found\n')
  expect((await svc('events')).stdout).toMatch(/agent_spawned +scout: .*\n.*agent_message +boss > scout: echo found\n$/)
  expect((await svc('topology')).stdout).toMatch(
    /^AGENT +STATE +MADE +WRITES WITH\n.*\nboss +Running +scout\nscout +Running +boss\n$/,
  )
  const refused = await svc('send', 'boss', 'hi', '--from', 'scout')
  expect([refused.code === 0, refused.stderr]).toEqual([false, expect.stringContaining('agent_message')])
})

it('sends to a chat of a channel', async () => {
  expect((await svc('send', 'channel:webhook:team', 'The report is there.')).stdout).toMatch(
    /^Message \S{36} is on its way/,
  )
  await platform.waitForSent(1)
  expect(platform.sent.at(-1)).toMatchObject({ text: 'The report is there.' })
  expect((await svc('send', 'channel:pigeon:1', 'x')).stderr).toContain('pigeon')
})

it('shows agents and events on its page, live, and sends', async () => {
  await using tab = await openTab(browser, host.url, { path: '/pages/comms/comms/comms.html' })
  const { page } = tab
  await page.getByRole('img', { name: 'boss and scout write to each other' }).waitFor()
  const events = page.getByRole('region', { name: 'Events' })
  await events.getByText('echo found').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "<b>late</b>"\n' })
  await events.getByText('<b>late</b>').first().waitFor()
  await page.getByRole('button', { name: 'Send a message' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('To').selectOption('scout')
  await dialog.getByLabel('From').selectOption('boss')
  await dialog.getByLabel('Message').fill('echo from the page')
  await dialog.getByRole('button', { name: 'Send' }).click()
  await dialog.getByRole('status').getByText('from the page').waitFor()
  await dialog.getByRole('button', { name: 'Close' }).click()
  await events.getByText('echo from the page').waitFor()
  expect(tab.complaints).toEqual([])
})
