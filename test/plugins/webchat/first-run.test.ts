import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems } from './accessibility.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage } from './browser.ts'

const key = 'k-123456789'
let browser: Browser
let built: BuiltPage
beforeAll(async () => {
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
})
afterAll(async () => {
  await browser?.close()
})
const daemon = (baseUrl: string, config: object = {}): Promise<TestHost> =>
  startHost({
    config: {
      ...config,
      providers: { openai: { base_url: baseUrl } },
      plugins: { webchat: { page_dir: built.folder } },
    },
  })
const screenshot = async (page: Page, name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}

test.each([
  ['light', 1180],
  ['dark', 375],
] as const)(
  'a newcomer connects a model and reads an answer without leaving the page, in the %s theme, %i pixels wide',
  async (colorScheme, width) => {
    await using fake = await startFakeProvider({ key, models: ['gpt-5-mini'] })
    await using host = await daemon(fake.url)
    await using tab = await openTab(browser, host.url, { colorScheme, viewport: { width, height: 900 } })
    const { page } = tab
    await page.getByText(/^The offline model answers for now/).waitFor()
    await screenshot(page, `welcome-${colorScheme}-${width}`)
    expect(await accessibilityProblems(page)).toEqual([])
    await page.getByRole('button', { name: 'Connect a model' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Provider').selectOption('openai')
    await dialog.getByLabel('API key').fill('wrong')
    await dialog.getByRole('button', { name: 'Save and test' }).click()
    await dialog
      .getByRole('alert')
      .filter({ hasText: /OpenAI does not answer: ./ })
      .waitFor()
    await screenshot(page, `connect-${colorScheme}-${width}`)
    expect(await accessibilityProblems(page)).toEqual([])
    await dialog.getByLabel('API key').fill(key)
    await dialog.getByRole('button', { name: /test/i }).click()
    await page.getByRole('dialog', { name: 'OpenAI answers' }).waitFor()
    await dialog.getByLabel('Model').fill('gpt-5-mini')
    await dialog.getByText(/^\$0\.25 in, \$2\.00 out per million$/).waitFor()
    await screenshot(page, `choose-model-${colorScheme}-${width}`)
    expect(await accessibilityProblems(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Use it' }).click()
    await page.getByRole('heading', { name: 'gpt-5-mini is connected' }).waitFor()
    await screenshot(page, `connected-${colorScheme}-${width}`)
    await page.locator('.steps .ideas button').first().click()
    await page.locator('.answer', { hasText: 'Hello from the fake.' }).locator('.answer-foot').waitFor()
    expect((await host.json('GET', '/api/config/provider')).body).toMatchObject({
      provider: 'openai',
      model: 'gpt-5-mini',
    })
    expect(await page.content()).not.toContain(key)
    expect(tab.complaints).toEqual([])
  },
)

test("a server of one's own that speaks OpenAI's format is connected by its address", async () => {
  await using fake = await startFakeProvider({ models: ['my-model'] })
  await using host = await startHost({ config: { plugins: { webchat: { page_dir: built.folder } } } })
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await page.getByRole('button', { name: 'Connect a model' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Provider').selectOption({ label: 'vLLM (needs no key)' })
  await dialog.getByLabel('Address').fill(fake.url)
  expect(await accessibilityProblems(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Test' }).click()
  await page.getByRole('dialog', { name: 'vLLM answers' }).waitFor()
  await dialog.getByLabel('Model').fill('my-model')
  await dialog.getByRole('button', { name: 'Use it' }).click()
  await page.getByRole('heading', { name: 'my-model is connected' }).waitFor()
  expect(await tab.say('hello')).toContain('Hello from the fake.')
  expect(tab.complaints).toEqual([])
})

test('where the default cannot be used, another one is connected from the notice', async () => {
  await using fake = await startFakeProvider({ key, models: ['gpt-5-mini'] })
  await using host = await daemon(fake.url, { default_provider: 'openia' })
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  const banner = page.getByRole('region', { name: 'Problem with the default model' })
  await banner.getByRole('button', { name: 'Connect a model' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Provider').selectOption('openai')
  await dialog.getByLabel('API key').fill(key)
  await dialog.getByRole('button', { name: 'Save and test' }).click()
  await dialog.getByRole('button', { name: 'Use it' }).click()
  await banner.waitFor({ state: 'detached' })
  expect(tab.complaints).toEqual([])
})
