import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'

let browser: Browser
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'queue', 'result-delivery', 'schedules'],
    memory: true,
    config: { plugins: { watch: false } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

it('shows schedules with their next times, runs one, shows its history and disables it', async () => {
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout"\n' })
  const body = {
    agent_id: 'scout',
    name: 'news',
    cron: '30 9 * * *',
    tz: 'Europe/Berlin',
    prompt: '<b>What</b> is new?',
  }
  await host.json('POST', '/api/schedules', body)
  await using tab = await openTab(browser, host.url, { path: '/pages/schedules/schedules/schedules.html' })
  const { page } = tab
  const card = page.getByRole('region', { name: 'news' })
  await card.getByText('30 9 * * * (Europe/Berlin)').waitFor()
  await card.getByText('<b>What</b> is new?').waitFor()
  await card.getByText('waiting').waitFor()
  await card.getByRole('button', { name: 'Run now: news' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Run now' }).click()
  await dialog.getByRole('status').waitFor()
  await dialog.getByRole('button', { name: 'Close' }).click()
  await card.getByRole('button', { name: 'History: news' }).click()
  await card.getByText('by hand').waitFor()
  await card.getByRole('button', { name: 'Disable: news' }).click()
  await page.getByText('“news” is disabled.').waitFor()
  await card.getByText('disabled by hand').waitFor()
  await card.getByRole('button', { name: 'Enable: news' }).click()
  await page.getByText('“news” is enabled.').waitFor()

  await page.getByRole('button', { name: 'New schedule' }).click()
  await dialog.getByLabel('When').fill('now and then')
  await dialog.getByLabel('What it is asked').fill('Look')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog
    .getByRole('alert')
    .filter({ hasText: /every 10 minutes/ })
    .waitFor()
  await dialog.getByLabel('When').fill('every 10 minutes')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByText('“Look” runs').waitFor()
  await page.getByRole('button', { name: 'Remove: Look' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('“Look” is removed.').waitFor()
  await page.getByText('One schedule').waitFor()
  // What the form refuses is on purpose.
  expect(tab.complaints.filter((text) => !text.includes('status of 400'))).toEqual([])
})
