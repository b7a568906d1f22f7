import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandName } from '../../../core/process/command-name.ts'
import { startHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage } from './browser.ts'

let browser: Browser
let built: BuiltPage
beforeAll(async () => {
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
})
afterAll(async () => {
  await browser?.close()
})

test.each([
  ['a phone in the dark', { viewport: { width: 320, height: 640 }, colorScheme: 'dark' as const }],
  ['a desktop', {}],
])('a default that cannot be used is said on %s, with what to do', async (name, options) => {
  await using host = await startHost({
    config: { default_provider: 'openia', plugins: { webchat: { page_dir: built.folder } } },
  })
  await using tab = await openTab(browser, host.url, options)
  const { page } = tab
  const banner = page.getByRole('region', { name: 'Problem with the default model' })
  await banner.getByText(/There is no provider "openia"; did you mean "openai"\?/).waitFor()
  const advice = banner.getByText(`${commandName()} doctor`, { exact: true })
  await expect
    .poll(async () => {
      const [place, frame] = [await advice.boundingBox(), await banner.boundingBox()]
      return place && frame && place.y >= frame.y && place.y + place.height <= frame.y + frame.height
    })
    .toBe(true)
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `default-problem-${name.replaceAll(' ', '-')}.png`) })
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(page.viewportSize()?.width)
  const box = await page.getByRole('textbox', { name: /^Message to/ }).boundingBox()
  expect(box && box.y + box.height <= (page.viewportSize()?.height ?? 0)).toBe(true)
  // It is mended elsewhere, and the page is asked to look again.
  await page.route(/\/api\/status$/, async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...(await response.json()), default_problem: null } })
  })
  await banner.getByRole('button', { name: 'Check again' }).press('Enter')
  await banner.waitFor({ state: 'detached' })
  expect(tab.complaints).toEqual([])
})

test('commands on the page are printed as they are typed on the machine of the daemon', async () => {
  await using host = await startHost({ config: { plugins: { webchat: { page_dir: built.folder } } } })
  await using tab = await openTab(browser, host.url, {
    async before(page) {
      await page.route(/\/api\/status$/, async (route) => {
        const response = await route.fetch()
        await route.fulfill({ response, json: { ...(await response.json()), command: 'npx svc' } })
      })
    },
  })
  await tab.page.getByText('npx svc init', { exact: true }).waitFor()
})
