import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { Tab } from './browser.ts'

let browser: Browser
let stage: ChatStage
let tab: Tab
beforeAll(async () => {
  const [opened, built] = await Promise.all([launchBrowser(), builtPage()])
  browser = opened
  stage = await openChat({ config: { plugins: { webchat: { page_dir: built.folder } } } })
  stage.fake.always(({ body }) => ({ text: `heard ${String(body.messages?.at(-1)?.content)}` }))
  tab = await openTab(browser, stage.host.url)
})
afterAll(async () => {
  await tab?.[Symbol.asyncDispose]()
  await browser?.close()
  await stage?.[Symbol.asyncDispose]()
})
const screenshot = async (name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await tab.page.screenshot({ path: join(folder, `${name}.png`) })
}
const questions = () => tab.page.locator('.bubble').allInnerTexts()
const titles = () => tab.page.locator('.session-title').allInnerTexts()

test('I go another way from an earlier answer, and both conversations are there', async () => {
  const { page } = tab
  for (const text of ['plan a trip', 'by train', 'to Oslo']) await tab.say(text)
  await page.locator('.answer', { hasText: 'heard by train' }).getByRole('button', { name: 'Branch' }).click()
  await expect.poll(titles).toEqual(['plan a trip (branch)', 'plan a trip'])
  expect(await questions()).toEqual(['plan a trip', 'by train'])
  expect(await tab.say('to Rome')).toContain('heard to Rome')
  await screenshot('branch')
  expect(stage.fake.requests.at(-1)?.body.messages?.map(({ content }) => content)).toEqual(
    expect.not.arrayContaining(['to Oslo']),
  )
  await page
    .getByRole('button', { name: /^plan a trip(?! \()/ })
    .first()
    .click()
  await page.locator('.bubble', { hasText: 'to Oslo' }).waitFor()
  expect(await questions()).toEqual(['plan a trip', 'by train', 'to Oslo'])
})

test('I begin a new conversation while an answer runs, and it goes on in the old one', async () => {
  const { page } = tab
  const slow = byHand()
  stage.fake.script({ text: slow.text })
  await page.getByRole('textbox', { name: /^Message to/ }).fill('take your time')
  await page.keyboard.press('Enter')
  slow.say('It is ')
  await page.locator('.answer', { hasText: 'It is' }).last().waitFor()
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: 'Say something to assistant' }).waitFor()
  expect(await tab.say('meanwhile')).toContain('heard meanwhile')
  await page
    .getByRole('button', { name: /^plan a trip(?! \()/ })
    .first()
    .click()
  await page.locator('.answer', { hasText: 'It is' }).last().waitFor()
  slow.say('done.')
  slow.end()
  await page.locator('.answer', { hasText: 'It is done.' }).locator('.answer-foot').waitFor()
  expect((await questions()).at(-1)).toBe('take your time')
})

test('a search brings me to the message, far up in a long conversation', async () => {
  const { page } = tab
  await stage.host.json('POST', `/api/agents/${stage.agent}/sessions`, { label: 'long' })
  const send = (message: string) => stage.host.json('POST', `/api/agents/${stage.agent}/message`, { message })
  await send('the word is heron')
  // More than the page reads at a time.
  for (let n = 0; n < 60; n++) await send(`line ${n}`)
  await page.reload()
  await page.locator('.bubble', { hasText: 'line 59' }).waitFor()
  expect(await page.locator('.bubble', { hasText: 'heron' }).count()).toBe(0)
  await page.getByRole('searchbox', { name: 'Search all messages' }).fill('heron')
  await page.locator('.found', { hasText: 'You to assistant' }).click()
  const found = page.locator('.found-entry')
  await found.waitFor()
  await screenshot('found')
  expect(await found.innerText()).toContain('the word is heron')
  expect(await found.evaluate((item) => item === document.activeElement)).toBe(true)
  expect(
    await found.evaluate((item) => {
      const { top, bottom } = item.getBoundingClientRect()
      return [top >= 0 && bottom <= innerHeight, document.body.scrollTop]
    }),
  ).toEqual([true, 0])
  expect(tab.complaints).toEqual([])
})

test('I see all of a long conversation, and nothing more is offered then', async () => {
  const { page } = tab
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
  const { body: agents } = await stage.host.json('GET', '/api/agents')
  for (let n = 0; n < 51; n++)
    await stage.host.json('POST', `/api/agents/${agents[0].id}/message`, { message: `question ${n}` })
  await page.reload()
  await page.locator('.bubble', { hasText: 'question 50' }).waitFor()
  expect(await page.locator('.bubble').count()).toBe(50)
  const earlier = page.getByRole('button', { name: 'Show earlier messages' })
  await earlier.click()
  await expect.poll(questions).toHaveLength(51)
  await earlier.waitFor({ state: 'detached' })
})
