import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import { startHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage, Tab } from './browser.ts'

let browser: Browser
let built: BuiltPage
beforeAll(async () => {
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
})
afterAll(async () => {
  await browser?.close()
})
const config = (more: object = {}) => ({ ...more, plugins: { webchat: { page_dir: built.folder } } })
const screenshot = async ({ page }: Tab, name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}
const boxOf = (page: Page) => page.getByRole('textbox', { name: /^Message to/ })
const notes = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('heron') }

test('each conversation keeps what is being written in it, with its files, over a reload', async () => {
  await using host = await startHost({ config: config() })
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo one')
  await page.locator('input[type=file]').setInputFiles(notes)
  await boxOf(page).fill('half a thought')
  await page.locator('.attachment.ready').waitFor()
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
  await expect.poll(() => boxOf(page).inputValue()).toBe('')
  expect(await page.locator('.attachment').count()).toBe(0)
  await boxOf(page).fill('another one')
  await page.reload()
  await expect.poll(() => boxOf(page).inputValue()).toBe('another one')
  await page
    .getByRole('region', { name: 'Conversations' })
    .getByRole('button', { name: /^echo one/ })
    .click()
  await expect.poll(() => boxOf(page).inputValue()).toBe('half a thought')
  await page.locator('.attachment.ready', { hasText: 'notes.txt' }).waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.locator('.question', { hasText: 'half a thought' }).getByText('notes.txt').waitFor()
  expect(await boxOf(page).inputValue()).toBe('')
  expect(tab.complaints).toEqual([])
})

test('what is written before the conversation is loaded stays', async () => {
  await using host = await startHost({ config: config() })
  const allowed = Promise.withResolvers<void>()
  await using tab = await openTab(browser, host.url, {
    before: async (page) => {
      await page.route('**/api/agents/*/session?*', async (route) => {
        await allowed.promise
        await route.continue()
      })
    },
  })
  const { page } = tab
  await boxOf(page).fill('early')
  const loaded = page.waitForResponse('**/api/agents/*/session?*')
  allowed.resolve()
  await loaded
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
  expect(await boxOf(page).inputValue()).toBe('early')
})

test('signing out leaves no draft in the tab', async () => {
  await using host = await startHost({ config: config({ api_key: 'sesame-0123456789' }) })
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await page.getByLabel('API key').fill('sesame-0123456789')
  await page.getByRole('button', { name: 'Open the chat' }).click()
  await page.getByText('Connected', { exact: true }).waitFor()
  await boxOf(page).fill('a secret thought')
  expect(await page.evaluate(() => JSON.stringify(sessionStorage))).toContain('a secret thought')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('API key').waitFor()
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
})

test('the last message is edited and sent again, by button or with the arrow', async () => {
  await using stage = await openChat({ config: config() })
  stage.fake.script({ text: ['one'] }, { text: ['two'] })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await tab.say('plant tomatos')
  await screenshot(tab, 'last-message')
  await page.getByRole('button', { name: 'Edit message' }).click()
  expect(await boxOf(page).inputValue()).toBe('plant tomatos')
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('message-box')
  await boxOf(page).fill('')
  await page.keyboard.press('ArrowUp')
  expect(await boxOf(page).inputValue()).toBe('plant tomatos')
  expect(await tab.say('plant tomatoes')).toContain('two')
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['plant tomatos', 'plant tomatoes'])
  expect(tab.complaints).toEqual([])
})

test('the last message is answered again, with its file', async () => {
  await using stage = await openChat({ config: config() })
  stage.fake.script({ text: ['one'] }, { text: ['two'] })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.locator('input[type=file]').setInputFiles(notes)
  await page.locator('.attachment.ready').waitFor()
  await tab.say('read it')
  await page.getByRole('button', { name: 'Answer again' }).click()
  await page.locator('.answer', { hasText: 'two' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['read it', 'read it'])
  expect(JSON.stringify(stage.fake.requests[1]).split('heron')).toHaveLength(3)
  expect(tab.complaints).toEqual([])
})
