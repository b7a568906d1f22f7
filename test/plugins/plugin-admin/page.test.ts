import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pluginText, writePlugin } from '../../support/plugin-folder.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'
import { greeter, KEY } from './stage.ts'

const PAGE = '/pages/plugin-admin/plugins/plugins.html'
const REFUSED = 'Failed to load resource: the server responded with a status of'

let browser: Browser
let host: TestHost
let folder: string
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    plugins: ['audit', 'webchat', 'system', 'plugin-admin'],
    memory: true,
    config: { api_key: KEY, plugins: { watch: false } },
  })
  folder = join(host.home, 'source')
  await mkdir(folder)
  await write('1.0.0')
  const bridge = pluginText('bridge', {
    setup: "for (const what of ['channel bridge', 'provider bridge']) ctx.own(what, () => undefined); return {}",
  })
  await host.app.host.load(await writePlugin(join(host.home, 'bridge'), bridge))
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

/** A plugin outside the folder of plugins. */
async function write(version: string): Promise<void> {
  for (const [name, text] of Object.entries(greeter(version, { version, name: 'greeter' })))
    await writeFile(join(folder, name), text)
}

it('asks for the key, and installs and reloads what is accepted', async () => {
  await using tab = await openTab(browser, host.url, { path: PAGE })
  const { page } = tab
  await page.getByLabel('API key').fill('another')
  await page.getByRole('button', { name: 'Show the plugins' }).click()
  await page.getByText('does not accept this key').waitFor()
  await page.getByLabel('API key').fill(KEY)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'plugin-admin' }).waitFor()
  expect(await page.locator('[data-plugin=bridge] summary').innerText()).toBe('1 channel, 1 provider')

  await page.getByRole('button', { name: 'Install a plugin' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox').fill(join(host.home, 'missing'))
  await page.keyboard.press('Enter')
  await dialog.getByRole('alert').filter({ hasText: 'missing' }).waitFor()
  await dialog.getByRole('textbox').fill(folder)
  await page.keyboard.press('Enter')
  await dialog.getByText('route:/api/greeter').waitFor()
  expect((await host.fetch('/api/greeter', { headers: { authorization: `Bearer ${KEY}` } })).status).toBe(404)
  await dialog.getByRole('button', { name: 'Accept and install' }).click()
  await page.getByText('greeter 1.0.0 is installed.').waitFor()

  const card = page.locator('[data-plugin=greeter]')
  expect(await card.innerText()).toMatch(/loaded\s+declared permissions/)
  await card.locator('summary').click()
  expect(await card.locator('dl').innerText()).toContain('GET /api/greeter')

  // The code of the plugin breaks: the old one goes on, and the page says why.
  await writePlugin(join(host.home, 'plugins', 'greeter'), 'export default <b>broken</b>')
  await card.getByRole('button', { name: 'Reload greeter' }).click()
  await page.getByRole('button', { name: 'Reload', exact: true }).click()
  await page.getByRole('dialog').getByRole('alert').waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await card.locator('.problem').waitFor()
  await writePlugin(join(host.home, 'plugins', 'greeter'), greeter('again')['index.ts'] ?? '')
  await card.getByRole('button', { name: 'Reload greeter' }).click()
  await page.getByRole('button', { name: 'Reload', exact: true }).click()
  await page.getByText('greeter is reloaded.').waitFor()
  expect(await card.locator('.problem').count()).toBe(0)
  expect(tab.complaints.filter((text) => !text.startsWith(REFUSED))).toEqual([])
})

it('follows what happens to plugins, updates and removes them', async () => {
  await using tab = await openTab(browser, host.url, {
    path: PAGE,
    before: async (page) => {
      await page.addInitScript((key) => sessionStorage.setItem('svc.credential', JSON.stringify({ key })), KEY)
    },
  })
  const { page } = tab
  const card = page.locator('[data-plugin=greeter]')
  await page.getByText('Live', { exact: true }).waitFor()
  const { reloads = 0 } = host.app.daemon.plugins().find(({ name }) => name === 'greeter') ?? {}
  await card.locator('summary').click()
  await host.json('POST', '/api/plugins/greeter/reload', undefined, { authorization: `Bearer ${KEY}` })
  await card.getByText(`reloaded ${reloads + 1} times`).waitFor()
  expect(await card.locator('details').evaluate((box) => (box as HTMLDetailsElement).open)).toBe(true)

  await card.getByRole('button', { name: 'Log greeter' }).click()
  await page
    .getByRole('dialog')
    .getByText(/reloaded|nothing lately/)
    .first()
    .waitFor()
  await page.keyboard.press('Escape')

  await write('2.0.0')
  await card.getByRole('button', { name: 'Update greeter' }).click()
  await page.getByRole('dialog', { name: 'Update greeter' }).waitFor()
  expect(await page.getByRole('dialog').getByRole('textbox').inputValue()).toBe(folder)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Accept and install' }).click()
  await page.getByText('greeter 2.0.0 is updated.').waitFor()

  const remove = card.getByRole('button', { name: 'Remove greeter' })
  await remove.click()
  await page.keyboard.press('Escape')
  await expect.poll(() => remove.evaluate((button) => button === document.activeElement)).toBe(true)
  await remove.click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('greeter is removed.').waitFor()
  expect(await card.count()).toBe(0)
  expect(tab.complaints).toEqual([])
})

it('uses the key that the tab was opened with, and fits a phone', async () => {
  await using tab = await openTab(browser, host.url, {
    path: PAGE,
    viewport: { width: 360, height: 700 },
    colorScheme: 'dark',
    before: async (page) => {
      await page.addInitScript((key) => sessionStorage.setItem('svc.credential', JSON.stringify({ key })), KEY)
    },
  })
  const { page } = tab
  await page.getByPlaceholder('Filter').fill('/api/plugins/install')
  await page.getByText(/^1 of \d+$/).waitFor()
  await page.locator('summary').click()
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360)
  expect(tab.complaints).toEqual([])
})
