import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems } from './accessibility.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { Tab } from './browser.ts'

const key = 'k-123456789'
let browser: Browser
let fake: FakeProvider
let host: TestHost
beforeAll(async () => {
  ;[browser, fake] = await Promise.all([launchBrowser(), startFakeProvider({ key })])
  host = await startHost({
    config: {
      default_provider: 'openai',
      default_model: 'gpt-5-mini',
      providers: { openai: { api_key: key, base_url: fake.url } },
      plugins: { webchat: { page_dir: (await builtPage()).folder } },
    },
  })
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([host?.[Symbol.asyncDispose](), fake?.[Symbol.asyncDispose]()])
})

const screenshot = async ({ page }: Tab, name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}

test.each([
  ['light', 1180],
  ['dark', 375],
] as const)(
  'the model is chosen by price and abilities, in the %s theme, %i pixels wide',
  async (colorScheme, width) => {
    await using tab = await openTab(browser, host.url, { colorScheme, viewport: { width, height: 800 } })
    const { page } = tab
    const title = page.locator('header.top')
    await title.getByRole('button', { name: 'Model: gpt-5-mini' }).click()
    const dialog = page.getByRole('dialog', { name: 'Model of assistant' })
    const nano = dialog.getByRole('button', { name: /^openai\/gpt-5-nano\b/ }).first()
    await nano.getByText(/^\$0\.05 in, \$0\.40 out per million$/).waitFor()
    await nano.getByText('tools', { exact: true }).waitFor()
    expect(await dialog.locator('[aria-current]').innerText()).toContain('openai/gpt-5-mini')
    await screenshot(tab, `model-picker-${colorScheme}-${width}`)
    expect(await accessibilityProblems(page)).toEqual([])
    await dialog.getByLabel('Search models').fill('GPT-5-nano')
    await expect.poll(() => dialog.getByRole('button', { name: 'The default model' }).count()).toBe(0)
    await nano.click()
    await title.getByRole('button', { name: 'Model: gpt-5-nano' }).waitFor()
    await tab.say('hello')
    expect(fake.requests.at(-1)?.body.model).toBe('gpt-5-nano')
    // Back to whatever the default is.
    await title.getByRole('button', { name: 'Model: gpt-5-nano' }).click()
    await dialog.getByRole('button', { name: /^The default model/ }).click()
    await title.getByRole('button', { name: 'Model: gpt-5-mini' }).waitFor()
    expect(tab.complaints).toEqual([])
  },
)

test('an agent is paused and resumed, and duplicated under another name', async () => {
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  const more = page.getByRole('button', { name: 'More for assistant' })
  await more.click()
  await screenshot(tab, 'agent-menu')
  await page.getByRole('link', { name: 'Edit' }).click()
  const editor = page.getByRole('dialog', { name: 'Edit assistant' })
  expect(await editor.getByLabel('Manifest (TOML)').inputValue()).toContain('name = "assistant"')
  await screenshot(tab, 'agent-editor')
  await page.reload()
  await page.getByRole('region', { name: 'assistant', exact: true }).waitFor()
  expect(await editor.count()).toBe(0)
  await page.goBack()
  await more.click()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.locator('header.top').getByText('paused').waitFor()
  await more.click()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.locator('header.top').getByText('paused').waitFor({ state: 'detached' })
  await more.click()
  await page.getByRole('button', { name: 'Duplicate …' }).click()
  const dialog = page.getByRole('dialog', { name: 'Duplicate assistant' })
  await dialog.getByLabel('Name').fill('assistant')
  await dialog.getByRole('button', { name: 'Duplicate' }).click()
  await dialog
    .getByRole('alert')
    .filter({ hasText: /assistant/ })
    .waitFor()
  await dialog.getByLabel('Name').fill('second')
  await dialog.getByRole('button', { name: 'Duplicate' }).click()
  await page.getByRole('heading', { level: 1, name: 'second' }).waitFor()
  expect(tab.complaints.filter((text) => !text.includes('409'))).toEqual([])
})

test('the menu closes with Escape, which gives the focus back, and with a click elsewhere', async () => {
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  const more = page.getByRole('button', { name: 'More for assistant' })
  const entry = page.getByRole('button', { name: 'Delete …' })
  await more.press('Enter')
  await entry.waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Escape')
  await entry.waitFor({ state: 'detached' })
  expect(await more.evaluate((button) => button === document.activeElement)).toBe(true)
  await more.click()
  await entry.waitFor()
  await page.getByRole('heading', { level: 1 }).click()
  await entry.waitFor({ state: 'detached' })
  expect(tab.complaints).toEqual([])
})
