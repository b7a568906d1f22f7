import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { byHand, openChat } from '../../support/chat-stage.ts'
import { FakeTelegram } from '../../support/platforms/telegram.ts'
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
const config = (more: object = {}) => ({ ...more, plugins: { webchat: { page_dir: built.folder } } })

test('what svc chat says, and its answer as it is written, is on the page at once', async () => {
  await using stage = await openChat({ config: config() })
  const answer = byHand()
  stage.fake.script({ text: answer.text })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  const terminal = runHere(['chat', '-m', 'from the terminal', '--url', stage.host.url, '--home', stage.host.home])
  await page.locator('.bubble', { hasText: 'from the terminal' }).waitFor()
  answer.say('half ')
  await page.locator('.answer', { hasText: 'half' }).waitFor()
  expect(await page.locator('.answer-foot').count()).toBe(0)
  answer.say('and whole')
  answer.end()
  await page.locator('.answer', { hasText: 'half and whole' }).locator('.answer-foot').waitFor()
  expect(await terminal).toMatchObject({ code: 0, stdout: expect.stringContaining('half and whole') })
  expect(await page.locator('.answer').count()).toBe(1)
  expect(tab.complaints).toEqual([])
})

test('a conversation that a channel begins comes into the list, and when it is open its messages are there at once', async () => {
  await using telegram = await FakeTelegram.start()
  const channels = {
    telegram: { ...telegram.config, agent_name: 'assistant', allowed_users: [telegram.person] },
  }
  await using stage = await openChat({ config: config({ channels }) })
  const answer = byHand()
  stage.fake.script({ text: ['Hello Ada.'] }, { text: answer.text })
  await telegram.waitForListener()
  await using tab = await openTab(browser, stage.host.url, { before: (page) => page.clock.install() })
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  await telegram.deliver({ text: 'from the phone' })
  await telegram.waitForSent(1)
  // The list is ten seconds old when the daemon speaks next.
  await page.clock.fastForward(11_000)
  const row = page.getByRole('region', { name: 'Conversations' }).getByRole('button', { name: /^from the phone/ })
  await row.click()
  await page.locator('.answer', { hasText: 'Hello Ada.' }).waitFor()
  await telegram.deliver({ text: 'and again' })
  await page.locator('.bubble', { hasText: 'and again' }).waitFor()
  await page.getByText('By a channel').waitFor()
  answer.say('Still ')
  await page.locator('.answer', { hasText: 'Still' }).waitFor()
  answer.say('here.')
  answer.end()
  await page.locator('.answer', { hasText: 'Still here.' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.question').count()).toBe(2)
  expect(tab.complaints).toEqual([])
})

test('an answer goes on where another conversation is begun, and is whole when one comes back', async () => {
  await using stage = await openChat({ config: config() })
  const answer = byHand()
  stage.fake.script({ text: answer.text })
  await using tab = await openTab(browser, stage.host.url)
  await using other = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  await page.getByRole('textbox', { name: /^Message to/ }).fill('a long story')
  await page.keyboard.press('Enter')
  answer.say('Once ')
  await other.page.locator('.answer', { hasText: 'Once' }).waitFor()
  await stage.post(`/api/agents/${stage.agent}/sessions`, {})
  await page.getByText('assistant is in another conversation now').waitFor()
  answer.say('upon a time.')
  answer.end()
  await page.locator('.answer', { hasText: 'Once upon a time.' }).locator('.answer-foot').waitFor()
  await page.getByRole('button', { name: 'Go to that one' }).click()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
  await page
    .getByRole('region', { name: 'Conversations' })
    .getByRole('button', { name: /^a long story/ })
    .click()
  await page.locator('.answer', { hasText: 'Once upon a time.' }).waitFor()
  expect(tab.complaints).toEqual([])
})
