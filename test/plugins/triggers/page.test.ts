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
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'queue', 'result-delivery', 'triggers'],
    memory: true,
    config: { plugins: { watch: false } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

it('shows triggers, disables and enables one, and shows what it fired for as soon as it does', async () => {
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "watcher"\n' })
  const pattern = { agent_spawned: { name_pattern: 'scout-*' } }
  const body = { agent_id: 'watcher', pattern, prompt_template: '<b>New</b>: {{event}}' }
  await host.json('POST', '/api/triggers', body)
  await using tab = await openTab(browser, host.url, { path: '/pages/triggers/triggers/triggers.html' })
  const { page } = tab
  const name = 'agent_spawned scout-*'
  const card = page.getByRole('region', { name })
  await card.getByText('<b>New</b>: {{event}}').waitFor()
  await card.getByRole('button', { name: `Disable: ${name}` }).click()
  await page.getByText(`“${name}” is disabled.`).waitFor()
  await card.getByText('disabled by hand').waitFor()
  await card.getByRole('button', { name: `Enable: ${name}` }).click()
  await page.getByText(`“${name}” is enabled.`).waitFor()
  await card.getByRole('button', { name: `History: ${name}` }).click()
  await card.getByText('It has matched nothing yet.').waitFor()
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout-1"\n' })
  await card.getByText("Agent 'scout-1'").waitFor()

  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: 'New trigger' }).click()
  await dialog.getByLabel('When').selectOption('all')
  await dialog.getByLabel('Only').waitFor({ state: 'hidden' })
  await dialog.getByLabel('When').selectOption('The daemon says a certain word')
  await dialog.getByLabel('Only').fill('started')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByText('The daemon says a certain word: from now on the agent is asked.').waitFor()
  await page.getByRole('button', { name: 'Remove: system_keyword started' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('“system_keyword started” is removed.').waitFor()
  expect(tab.complaints).toEqual([])
})
