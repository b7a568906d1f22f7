import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
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

test('a slow answer says where the message is: behind another one, then with the model, and nothing more once it comes', async () => {
  await using stage = await openChat({ config: { plugins: { webchat: { page_dir: built.folder } } } })
  const [first, second] = [byHand(), byHand()]
  stage.fake.script({ text: first.text }, { text: second.text })
  const before = stage.post(`/api/agents/${stage.agent}/message`, { message: 'somebody else asks' })
  await stage.fake.request(0)
  const own = stage.post(`/api/agents/${stage.agent}/message`, { message: 'where is my message?' })
  await using tab = await openTab(browser, stage.host.url)
  const answer = tab.page.locator('.answer').last()
  await tab.page.locator('.bubble', { hasText: 'where is my message?' }).waitFor()
  await answer.getByText('It is answered after the one before it.').waitFor()
  if (process.env['SVC_SCREENSHOT']) await tab.page.screenshot({ path: process.env['SVC_SCREENSHOT'] })
  first.say('done')
  first.end()
  await answer.getByText(/Received. The model has been at it for \d+ seconds./).waitFor()
  second.say('here it is')
  second.end()
  await answer.locator('.answer-foot').waitFor()
  expect(await answer.innerText()).toContain('here it is')
  expect(await answer.getByText('Received.').count()).toBe(0)
  expect((await before).status).toBe(200)
  expect((await own).status).toBe(200)
  expect(tab.complaints).toEqual([])
})
