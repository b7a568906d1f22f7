import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
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
const config = () => ({ plugins: { webchat: { page_dir: built.folder } } })
const daemon = (): Promise<TestHost> => startHost({ config: config() })
const screenshot = async ({ page }: Tab, name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}

test('older conversations are listed with titles and opened', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo the first thing')
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: 'Say something to assistant' }).waitFor()
  await tab.say('echo the second thing')
  const list = page.getByRole('region', { name: 'Conversations' })
  const first = list.getByRole('button', { name: /^echo the first thing/ })
  await expect
    .poll(() => list.locator('.session-title').allInnerTexts())
    .toEqual(['echo the second thing', 'echo the first thing'])
  await first.focus()
  await page.keyboard.press('Enter')
  await page.locator('.bubble', { hasText: 'echo the first thing' }).waitFor()
  await expect.poll(() => first.getAttribute('aria-current')).toBe('true')
  await tab.say('echo once more')
  const { messages } = (
    await host.json('GET', `/api/agents/${(await host.json('GET', '/api/agents')).body[0].id}/session`)
  ).body
  expect(messages[0].content).toBe('echo the first thing')
  expect(tab.complaints).toEqual([])
})

test('on a phone the list is in the drawer, and choosing closes it', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url, {
    viewport: { width: 360, height: 640 },
    colorScheme: 'dark',
    hasTouch: true,
  })
  const { page } = tab
  await tab.say('echo the first thing')
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: 'Say something to assistant' }).waitFor()
  await tab.say('echo the second thing')
  await page.getByRole('button', { name: 'Agents', exact: true }).click()
  const first = page.getByRole('button', { name: /^echo the first thing/ })
  await first.waitFor()
  await screenshot(tab, 'sessions-phone')
  await first.click()
  await page.locator('.bubble', { hasText: 'echo the first thing' }).waitFor()
  await expect.poll(() => page.locator('nav.open').count()).toBe(0)
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360)
})

test('a reload during an answer goes on with it, and never says that there is none', async () => {
  await using stage = await openChat({ config: config() })
  const answer = byHand()
  stage.fake.script({ text: answer.text })
  await using tab = await openTab(browser, stage.host.url, {
    before: async (page) => {
      await page.addInitScript(() => {
        Object.assign(window, { denied: 0 })
        new MutationObserver(() => {
          if (document.body?.textContent?.includes('No answer is recorded')) Object.assign(window, { denied: 1 })
        }).observe(document, { subtree: true, childList: true, characterData: true })
      })
    },
  })
  const { page } = tab
  await page.getByRole('textbox', { name: /^Message to/ }).fill('tell me')
  await page.keyboard.press('Enter')
  await stage.fake.request(0)
  answer.say('Once upon a time ')
  await page.locator('.answer', { hasText: 'Once upon' }).waitFor()
  await page.reload()
  await page.locator('.answer', { hasText: 'Once upon' }).waitFor()
  answer.say('there was a daemon.')
  await page.locator('.answer', { hasText: 'Once upon a time there was a daemon.' }).waitFor()
  answer.end()
  await page.locator('.answer-foot').waitFor()
  expect(await page.locator('.answer').count()).toBe(1)
  expect(await page.evaluate('window.denied')).toBe(0)
  expect(tab.complaints).toEqual([])
})

test('what another tab and the API send shows at once, as it is written', async () => {
  await using stage = await openChat({ config: config() })
  const [one, two] = [byHand(), byHand()]
  stage.fake.script({ text: one.text }, { text: two.text })
  await using left = await openTab(browser, stage.host.url)
  await using right = await openTab(browser, stage.host.url)
  for (const { page } of [left, right]) await page.getByText('Connected', { exact: true }).waitFor()
  await left.page.getByRole('textbox', { name: /^Message to/ }).fill('from the left')
  await left.page.keyboard.press('Enter')
  await right.page.locator('.bubble', { hasText: 'from the left' }).waitFor()
  one.say('half ')
  await right.page.locator('.answer', { hasText: 'half' }).waitFor()
  const posted = stage.post(`/api/agents/${stage.agent}/message`, { message: 'from the API' })
  for (const { page } of [left, right]) await page.locator('.bubble', { hasText: 'from the API' }).waitFor()
  await right.page.getByText('It is answered after the one before it.').waitFor()
  one.say('and whole')
  one.end()
  await left.page.locator('.answer', { hasText: 'half and whole' }).locator('.answer-foot').waitFor()
  two.say('to the API')
  two.end()
  for (const { page } of [left, right]) {
    await page.locator('.answer', { hasText: 'to the API' }).locator('.answer-foot').waitFor()
    expect(await page.locator('.question').count()).toBe(2)
    expect(await page.locator('.answer').count()).toBe(2)
  }
  await posted
  expect([...left.complaints, ...right.complaints]).toEqual([])
})

test('a tab on an old conversation says so and sends nothing before somebody chose', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo old')
  const { body: agents } = await host.json('GET', '/api/agents')
  await host.json('POST', `/api/agents/${agents[0].id}/session/reset`)
  await page.getByText('assistant is in another conversation now').waitFor()
  await screenshot(tab, 'elsewhere')
  const box = page.getByRole('textbox', { name: /^Message to/ })
  await box.fill('echo where does this go')
  await box.press('Enter')
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Go to that one')
  expect(await box.inputValue()).toBe('echo where does this go')
  await page.getByRole('button', { name: 'Continue here' }).click()
  await page.getByText('assistant is in another conversation now').waitFor({ state: 'detached' })
  await box.press('Enter')
  await page.locator('.answer', { hasText: 'where does this go' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.question').count()).toBe(2)
  expect(tab.complaints).toEqual([])
})
