import type { Browser, Route, WebSocketRoute } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage } from './browser.ts'

let browser: Browser
let built: BuiltPage
let fake: FakeProvider
beforeAll(async () => {
  ;[browser, built, fake] = await Promise.all([launchBrowser(), builtPage(), startFakeProvider()])
})
afterAll(async () => {
  await browser?.close()
  await fake?.[Symbol.asyncDispose]()
})
function daemon(): Promise<TestHost> {
  return startHost({
    config: {
      default_provider: 'openai',
      default_model: 'gpt-5-mini',
      providers: { openai: { api_key: 'k-123456789', base_url: fake.url } },
      plugins: { webchat: { page_dir: built.folder } },
    },
  })
}
/** Text whose second half comes when it is let go. */
function halves(first: string, second: string): { readonly text: AsyncIterable<string>; readonly letGo: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return {
    letGo: resolve,
    text: (async function* () {
      yield first
      await promise
      yield second
    })(),
  }
}

test('with a provider the model is named, and no word is said of the offline one', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.page.getByRole('heading', { name: 'Say something to assistant' }).waitFor()
  expect(await tab.page.locator('.top-model-name').innerText()).toBe('gpt-5-mini')
  expect(await tab.page.getByText('offline').count()).toBe(0)
  fake.always({ text: ['Good ', 'day.'] })
  expect(await tab.say('hello')).toMatch(/Good day\.[\s\S]*gpt-5-mini/)
  expect(tab.complaints).toEqual([])
})

test('an answer says which model gave it and what it cost', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  fake.script({ text: 'Known.', usage: { prompt_tokens: 100_000, completion_tokens: 20_000, total_tokens: 120_000 } })
  expect(await tab.say('hello')).toMatch(/100,000 tokens in · 20,000 out · \$0\.0650 · openai\/gpt-5-mini/)
  await host.json('PUT', `/api/agents/${(await host.json('GET', '/api/agents')).body[0].id}/model`, {
    model: 'nobody-knows-it',
  })
  fake.script({ text: 'Unknown.' })
  expect(await tab.say('and now?')).toMatch(/cost unknown · openai\/nobody-knows-it/)
  expect(await tab.page.locator('.answer-foot span').last().getAttribute('title')).toContain(
    'The price of nobody-knows-it is unknown',
  )
  await tab.page.reload()
  await expect
    .poll(async () => await tab.page.locator('.answer-foot > span').allInnerTexts())
    .toEqual([
      '100,000 tokens in · 20,000 out · $0.0650 · openai/gpt-5-mini',
      expect.stringMatching(/cost unknown · openai\/nobody-knows-it/),
    ])
  expect(tab.complaints).toEqual([])
})

test('Escape stops an answer, and what was said stays', async () => {
  const { text, letGo } = halves('The first half, ', 'never heard')
  fake.script({ text })
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.page.locator('#message-box').fill('tell me')
  await tab.page.keyboard.press('Enter')
  await tab.page.locator('.growing', { hasText: 'The first half' }).waitFor()
  await tab.page.getByRole('button', { name: 'Stop the answer' }).waitFor()
  await tab.page.keyboard.press('Escape')
  await tab.page.locator('.answer', { hasText: 'Stopped.' }).waitFor()
  letGo()
  expect(await tab.page.locator('.answer .prose').innerText()).toContain('The first half')
  await tab.page.getByRole('button', { name: 'Send' }).waitFor()
  fake.always({ text: 'On with it.' })
  expect(await tab.say('and now?')).toContain('On with it.')
  await tab.page.reload()
  await tab.page.locator('.answer', { hasText: 'Stopped.' }).waitFor()
})

test('a refusal of the provider is shown in the place of the answer, and asking again works', async () => {
  fake.script({
    status: 401,
    body: JSON.stringify({
      error: { message: 'Incorrect API key provided', type: 'invalid_request_error', code: 'invalid_api_key' },
    }),
  })
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.say('hello')
  const problem = tab.page.locator('.answer').getByRole('alert')
  const said = await problem.locator('p').innerText()
  expect(said).toMatch(/key|openai/i)
  await tab.page.reload()
  await problem.getByText(said).waitFor()
  await using other = await openTab(browser, host.url)
  await other.page.locator('.answer').getByRole('alert').getByText(said).waitFor()
  const { text, letGo } = halves('Now it ', 'works.')
  fake.script({ text })
  // The stream of the session shows the new turn before the session is read again.
  const hold = async (route: Route): Promise<void> => {
    await tab.page.locator('.growing', { hasText: 'Now it' }).waitFor()
    await route.continue()
  }
  await tab.page.route('**/api/sessions/*?limit=*', hold, { times: 1 })
  const read = tab.page.waitForResponse(/\/api\/sessions\/[^/]+\?limit=/)
  await problem.getByRole('button', { name: /^(?:Ask again|Retry)$/ }).click()
  await read
  letGo()
  await tab.page.locator('.answer', { hasText: 'Now it works.' }).locator('.answer-foot').waitFor()
  expect(await tab.page.locator('.question').count()).toBe(1)
  await other.page.locator('.answer', { hasText: 'Now it works.' }).locator('.answer-foot').waitFor()
  expect(await other.page.locator('.question').count()).toBe(1)
  expect(await other.page.locator('.answer').count()).toBe(1)
  expect([...tab.complaints, ...other.complaints]).toEqual([])
})

test('an answer whose connection went away under it appears when it is ready', async () => {
  const { text, letGo } = halves('Half of it, ', 'and the rest.')
  fake.script({ text })
  await using host = await daemon()
  const routes: WebSocketRoute[] = []
  await using tab = await openTab(browser, host.url, {
    before: (page) =>
      page.routeWebSocket(/\/ws$/, (route) => {
        route.connectToServer()
        routes.push(route)
      }),
  })
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.page.locator('#message-box').fill('tell me')
  await tab.page.keyboard.press('Enter')
  await tab.page.locator('.growing', { hasText: 'Half of it' }).waitFor()
  await routes.at(-1)?.close({ code: 1012, reason: 'service restart' })
  letGo()
  await tab.page.locator('.answer', { hasText: 'Half of it, and the rest.' }).waitFor()
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  expect(routes.length).toBeGreaterThan(1)
  expect(await tab.page.locator('.answer').count()).toBe(1)
})

test('an answer goes on while another agent is looked at, and the list says so', async () => {
  const { text, letGo } = halves('Thinking it over, ', 'here it is.')
  fake.script({ text })
  await using host = await daemon()
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "other"' })
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.page.locator('#message-box').fill('tell me')
  await tab.page.keyboard.press('Enter')
  await tab.page.locator('.growing', { hasText: 'Thinking it over' }).waitFor()
  const agents = tab.page.getByRole('navigation', { name: 'Agents' })
  await agents.getByRole('button', { name: /other/ }).click()
  await tab.page.getByRole('heading', { level: 1, name: 'other' }).waitFor()
  await agents.getByRole('button', { name: /assistant.*answering/s }).waitFor()
  letGo()
  await agents.getByText('answering').waitFor({ state: 'detached' })
  await agents.getByRole('button', { name: /assistant/ }).click()
  await tab.page.locator('.answer', { hasText: 'Thinking it over, here it is.' }).locator('.answer-foot').waitFor()
  expect(await tab.page.locator('.answer').count()).toBe(1)
  expect(tab.complaints).toEqual([])
})
