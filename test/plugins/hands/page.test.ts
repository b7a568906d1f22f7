import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'
import { definition, handPlugins, writeHand } from './stage.ts'

let browser: Browser
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    plugins: [...handPlugins, 'webchat', 'providers/builtin', 'hands'],
    memory: true,
    config: { plugins: { watch: false } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

it('shows hands and what they lack, activates one with settings, pauses it and lets it go', async () => {
  const needs =
    '[[requires]]\nkey = "x"\nlabel = "Gauge"\nrequirement_type = "binary"\ncheck_value = "no-gauge"\noptional = true\n'
  const toml = definition('tides', needs).replace('env_var = "TIDES_TOKEN"', 'env_var = "TIDES_TOKEN"\nrequired = true')
  await writeHand(host, 'tides', toml)
  await writeHand(host, 'broken', definition('broken').replace('"toggle"', '"switch"'))
  await using tab = await openTab(browser, host.url, { path: '/pages/hands/hands/hands.html' })
  const { page } = tab
  await page.getByRole('region', { name: 'broken', exact: true }).getByText('settings.1.setting_type').waitFor()
  await page.getByRole('region', { name: 'Browser', exact: true }).getByText('browser_navigate').waitFor()
  const hand = page.getByRole('region', { name: 'Tides', exact: true })
  await hand.getByRole('button', { name: 'Activate' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Harbour').selectOption('husum')
  await dialog.getByLabel('Loud').check()
  await dialog.getByText('needed: without it').waitFor()
  await dialog.getByLabel('Name of the instance').fill('../x')
  await dialog.getByRole('button', { name: 'Activate' }).click()
  await dialog.getByRole('alert').getByText('must be 1 to 48 letters').waitFor()
  await dialog.getByLabel('Name of the instance').fill('default')
  await dialog.getByRole('button', { name: 'Activate' }).click()
  const card = page.getByRole('region', { name: 'Tides · default', exact: true })
  // The button was far below it.
  await expect
    .poll(async () => {
      const [box, height] = [await card.boundingBox(), page.viewportSize()?.height ?? 0]
      return box && box.y >= 0 && box.y + Math.min(box.height, 100) <= height
    })
    .toBe(true)
  await card.getByText('It lacks the setting "token" (Token); Gauge.').waitFor()
  await card.getByText('none yet').first().waitFor()
  await card.getByRole('button', { name: 'Pause' }).click()
  await card.getByText('Paused').waitFor()
  await card.getByRole('button', { name: 'Resume' }).click()
  await card.getByText('Active').waitFor()
  await card.getByRole('button', { name: 'Settings' }).click()
  expect(await dialog.getByLabel('Harbour').inputValue()).toBe('husum')
  expect(await dialog.getByLabel('Token').getAttribute('type')).toBe('password')
  await dialog.getByLabel('Token').fill('a secret')
  await dialog.getByLabel('Harbour').selectOption('hamburg')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('hold from its next run').waitFor()
  await card.getByText('It lacks Gauge.').waitFor()
  await card.getByRole('button', { name: 'Deactivate' }).click()
  await dialog.getByRole('button', { name: 'Deactivate' }).click()
  await page.getByText('is deactivated.').waitFor()
  expect((await host.json('GET', '/api/hands/active')).body.total).toBe(0)
  // The setting that was refused.
  expect(tab.complaints).toEqual([expect.stringContaining('status of 400')])
})
