import { join } from 'node:path'
import type { Browser, WebSocketRoute } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
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

test('the page says what is waited for, with the time that is left, and folds what the model thought', async () => {
  await using host = await startHost({ config: { plugins: { webchat: { page_dir: built.folder } } } })
  let socket: WebSocketRoute | undefined
  await using tab = await openTab(browser, host.url, {
    before: (page) =>
      page.routeWebSocket(/\/ws$/, (route) => {
        // Answers by hand, as the daemon would for a provider that is overloaded.
        socket = route
        route.send('{"type":"connected"}')
      }),
  })
  const { page } = tab
  const send = (frame: object): void => socket?.send(JSON.stringify(frame))
  await page.getByText('Connected', { exact: true }).waitFor()
  await page.getByRole('textbox', { name: /^Message to/ }).fill('hello')
  await page.keyboard.press('Enter')
  const answer = page.locator('.answer')
  await answer.getByText('Thinking').waitFor()
  send({ type: 'thinking', turn_id: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d' })
  send({
    type: 'phase',
    phase: 'retrying',
    detail: 'openai is overloaded',
    retry_at: new Date(Date.now() + 32_000).toISOString(),
    attempt: 2,
  })
  await answer.getByText(/^openai is overloaded; next try in \d+ s\.$/).waitFor()
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, 'phase.png') })
  send({ type: 'phase', phase: 'waiting_for_model', detail: '' })
  await answer.getByText('The model is thinking.').waitFor()
  send({ type: 'thinking_delta', content: 'They greet me. ' })
  send({ type: 'thinking_delta', content: 'I greet back.' })
  const thought = answer.locator('details.reasoning')
  await thought.waitFor()
  expect(await thought.getAttribute('open')).toBeNull()
  send({ type: 'text_delta', content: 'Good day.' })
  await answer.getByText('Good day.').waitFor()
  expect(await answer.getByText('The model is thinking.').count()).toBe(0)
  await thought.getByText('Reasoning').click()
  await thought.getByText('They greet me. I greet back.').waitFor()
  send({ type: 'response', content: 'Good day.', input_tokens: 3, output_tokens: 2 })
  await answer.locator('.answer-foot').waitFor()
})

const turn = '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d'
const asking = { id: 'm', role: 'User', content: 'hello', turn_id: turn }
test.each([
  [
    'failed',
    'openai: overloaded',
    [
      {
        ...asking,
        failed: true,
        error: { code: 'service_unavailable', message: 'openai: overloaded', retryable: true },
      },
    ],
  ],
  [
    'was interrupted',
    'The daemon stopped before this answer was complete.',
    [asking, { id: 'n', role: 'Assistant', content: 'Good d', mark: 'interrupted', turn_id: turn }],
  ],
])('a message whose turn %s says so, and can be retried or dropped', async (_what, text, messages) => {
  await using host = await startHost({ config: { plugins: { webchat: { page_dir: built.folder } } } })
  const asked: string[] = []
  let dropped = false
  await using tab = await openTab(browser, host.url, {
    before: async (page) => {
      await page.route(/\/session\?|\/api\/sessions\/[^/]+\?/, async (route) => {
        const response = await route.fetch()
        const view = await response.json()
        const shown = dropped ? [] : messages
        await route.fulfill({ response, json: { ...view, message_count: shown.length, messages: shown } })
      })
      await page.route(/\/api\/turns\//, async (route) => {
        asked.push(new URL(route.request().url()).pathname)
        dropped = asked.length > 1
        await route.fulfill({ status: 200, json: {} })
      })
    },
  })
  const { page } = tab
  const problem = page.locator('.answer').getByRole('alert')
  await problem.getByText(text).waitFor()
  await problem.getByRole('button', { name: 'Retry' }).click()
  await expect.poll(() => asked).toEqual([`/api/turns/${turn}/retry`])
  await problem.getByRole('button', { name: 'Drop' }).click()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
  expect(asked.at(-1)).toBe(`/api/turns/${turn}/drop`)
})

test('with a real daemon: an overloaded provider, what the model thinks, and a slow answer', async () => {
  await using stage = await openChat({ config: { plugins: { webchat: { page_dir: built.folder } } } })
  const slow = byHand()
  stage.fake.script(
    { status: 429, headers: { 'retry-after': '3' }, body: '{"error":{"message":"Slow down"}}' },
    { reasoning: ['They greet me. ', 'I greet back.'], text: slow.text },
  )
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  await page.getByRole('textbox', { name: /^Message to/ }).fill('hello')
  await page.keyboard.press('Enter')
  const answer = page.locator('.answer')
  await answer.getByText(/^openai answered 429: Slow down; next try in \d s\.$/).waitFor()
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, 'phase-real.png') })
  // A tab that comes in the middle is told the same.
  await using second = await openTab(browser, stage.host.url)
  await second.page
    .locator('.answer')
    .getByText(/next try in \d s|trying again|model/)
    .first()
    .waitFor()
  await stage.fake.request(1)
  slow.say('Good ')
  await answer.getByText('Good').waitFor()
  expect(await answer.getByText(/next try in/).count()).toBe(0)
  await answer.getByText('Reasoning').click()
  await answer.getByText('They greet me. I greet back.').waitFor()
  slow.say('day.')
  slow.end()
  await answer.locator('.answer-foot').waitFor()
  await second.page.locator('.answer', { hasText: 'Good day.' }).locator('.answer-foot').waitFor()
  // Reasoning is on record as well.
  await page.reload()
  await answer.getByText('Reasoning').click()
  await answer.getByText('They greet me. I greet back.').waitFor()
  expect(tab.complaints).toEqual([])
})

test('with a real daemon: a refused message stays as failed, is asked again from there or dropped, and the next goes on', async () => {
  await using stage = await openChat({ config: { plugins: { webchat: { page_dir: built.folder } } } })
  const refused = { status: 400, body: '{"error":{"message":"The image is broken"}}' }
  stage.fake.script(refused, { text: 'Good day.' }, refused, { text: 'Still here.' })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  const problem = page.locator('.answer').getByRole('alert')
  const send = async (text: string): Promise<void> => {
    await page.getByRole('textbox', { name: /^Message to/ }).fill(text)
    await page.keyboard.press('Enter')
  }
  await send('hello')
  await problem.getByText(/The image is broken/).waitFor()
  await problem.getByRole('button', { name: 'Retry' }).waitFor()
  await page.reload()
  await problem.getByText(/The image is broken/).waitFor()
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, 'failed-real.png') })
  await problem.getByRole('button', { name: 'Retry' }).press('Enter')
  await page.locator('.answer', { hasText: 'Good day.' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['hello'])
  await send('again')
  await problem.getByRole('button', { name: 'Drop' }).press('Enter')
  await problem.waitFor({ state: 'detached' })
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['hello'])
  await send('and now?')
  await page.locator('.answer', { hasText: 'Still here.' }).locator('.answer-foot').waitFor()
  expect(JSON.stringify(stage.fake.requests.at(-1)?.body)).not.toContain('"again"')
  expect(tab.complaints).toEqual([])
})
