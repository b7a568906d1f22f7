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
    plugins: [...turnPlugins, 'queue', 'webchat', 'providers/builtin', 'system', 'memory'],
    memory: true,
    config: { plugins: { watch: false } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

it('shows memories and where they are known from, searches them, and forgets', async () => {
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout"\n' })
  for (const content of ['<b>The boat</b> is red', 'The car is green'])
    await host.json('POST', '/api/memory', { content, agent_id: 'scout' })
  await using tab = await openTab(browser, host.url, { path: '/pages/memory/memory/memory.html' })
  const { page } = tab
  await page.getByText('2 of 2.').waitFor()
  await page.getByLabel('Search').fill('boat')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByText('1 of 1.').waitFor()
  const card = page.getByRole('region', { name: '<b>The boat</b> is red' })
  await card.getByText('person operator').waitFor()
  await card.getByRole('button', { name: 'Forget' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click()
  await page.getByText('It is forgotten').waitFor()
  await page.getByText('Nothing is known about this.').waitFor()
  expect((await host.json('GET', '/api/memory')).body.total).toBe(1)
  expect(tab.complaints).toEqual([])
})
