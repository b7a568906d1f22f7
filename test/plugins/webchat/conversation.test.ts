import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { HostOptions, TestHost } from '../../support/host.ts'
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
function daemon(options: HostOptions = {}): Promise<TestHost> {
  return startHost({ ...options, config: { ...options.config, plugins: { webchat: { page_dir: built.folder } } } })
}

test('a first visit shows the agent, what to do, and that the offline model answers', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.page.getByRole('heading', { name: 'Say something to assistant' }).waitFor()
  await tab.page.getByText(/^The offline model answers for now/).waitFor()
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  expect(await tab.page.title()).toBe('assistant · svc')
  await tab.page.getByRole('button', { name: 'List your tools' }).click()
  await tab.page
    .locator('.answer', { hasText: /tools?/ })
    .locator('.answer-foot')
    .waitFor()
  expect(tab.complaints).toEqual([])
})

test('an answer streams in, ends with its figures, and is there again after a reload', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  // Every text the answer went through, as the page drew it.
  await tab.page.evaluate(() => {
    const seen: string[] = []
    Object.assign(window, { seen })
    new MutationObserver(() => {
      const text = document.querySelector('.answer .prose')?.textContent ?? ''
      if (text !== seen.at(-1)) seen.push(text)
    }).observe(document.body, { subtree: true, childList: true, characterData: true })
  })
  const answer = await tab.say('help')
  expect(answer).toMatch(/\d+ tokens in · \d+ out/)
  const seen = await tab.page.evaluate<string[]>('window.seen')
  expect(seen.filter((text) => text !== '').length).toBeGreaterThan(2)
  await tab.page.reload()
  await tab.page.locator('.answer .prose').waitFor()
  expect(await tab.page.locator('.question .bubble').innerText()).toBe('help')
  expect(await tab.page.locator('.answer .prose').innerText()).toContain('What I understand')
  expect(tab.complaints).toEqual([])
})

test('a tool call is shown closed, with its input and result inside', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.say('use kv_set {"key": "city", "value": "Ulm"}')
  const call = tab.page.locator('details.tool')
  expect(await call.count()).toBe(1)
  expect(await call.getAttribute('open')).toBeNull()
  expect(await call.locator('summary').innerText()).toMatch(/kv_set[\s\S]*done/)
  await call.locator('summary').click()
  expect(await call.locator('pre').first().innerText()).toContain('"city"')
  expect(await call.locator('pre').nth(1).innerText()).not.toBe('')
  await tab.page.reload()
  await tab.page.locator('details.tool summary', { hasText: 'kv_set' }).waitFor()
  expect(tab.complaints).toEqual([])
})

test('a new conversation empties the page and the session', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.say('echo one')
  await tab.page.getByRole('button', { name: 'New conversation' }).click()
  await tab.page.getByRole('heading', { name: 'Say something to assistant' }).waitFor()
  await tab.page.reload()
  await tab.page.getByRole('heading', { name: 'Say something to assistant' }).waitFor()
  expect(await tab.page.locator('.question').count()).toBe(0)
})

test('what is written while a new conversation is being made goes into the new one', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  const asked = Promise.withResolvers<void>()
  const allowed = Promise.withResolvers<void>()
  await page.route('**/api/agents/*/sessions', async (route) => {
    if (route.request().method() !== 'POST') return route.fallback()
    asked.resolve()
    await allowed.promise
    await route.continue()
  })
  await tab.say('echo one')
  await page.getByRole('button', { name: 'New conversation' }).click()
  await asked.promise
  await page.getByRole('textbox', { name: /^Message to/ }).fill('echo two')
  await page.keyboard.press('Enter')
  allowed.resolve()
  await page.locator('.answer', { hasText: 'two' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.question').allInnerTexts()).toEqual([expect.stringContaining('echo two')])
  await page.reload()
  await page.locator('.question', { hasText: 'echo two' }).waitFor()
  expect(await page.locator('.question').count()).toBe(1)
  expect(tab.complaints).toEqual([])
})

test('what is written while no new conversation can be made is kept and not sent', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  const asked = Promise.withResolvers<void>()
  const refused = Promise.withResolvers<void>()
  await page.route('**/api/agents/*/sessions', async (route) => {
    if (route.request().method() !== 'POST') return route.fallback()
    asked.resolve()
    await refused.promise
    await route.fulfill({ status: 503, json: { error: { code: 'unavailable', message: 'Not now', details: {} } } })
  })
  await tab.say('echo one')
  await page.getByRole('button', { name: 'New conversation' }).click()
  await asked.promise
  await page.getByRole('textbox', { name: /^Message to/ }).fill('echo two')
  await page.keyboard.press('Enter')
  refused.resolve()
  await page.getByText('A new conversation could not be started').waitFor()
  expect(await page.locator('.question').count()).toBe(1)
  const waiting = page.getByRole('region', { name: 'Waiting to be sent' })
  await waiting.getByText('echo two').waitFor()
  await waiting.getByText('not sent yet').waitFor()
})

test('where no socket opens, answers stream over server-sent events and tool results are shown all the same', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url, {
    before: async (page) => {
      await page.addInitScript(() => {
        Object.assign(window, {
          WebSocket: function () {
            throw new Error('no sockets here')
          },
        })
      })
    },
  })
  await tab.page.getByText('Connected over HTTP').waitFor()
  expect(await tab.say('echo over the wire')).toContain('over the wire')
  await tab.say('use kv_set {"key": "a", "value": 1}')
  await tab.page.locator('details.tool.done summary').click()
  await expect.poll(() => tab.page.locator('details.tool pre').nth(1).innerText()).not.toBe('')
})

test('an answer over HTTP is shown once where the stream of the session tells of it later', async () => {
  await using host = await daemon()
  const following = Promise.withResolvers<void>()
  await using tab = await openTab(browser, host.url, {
    before: async (page) => {
      await page.exposeFunction('follows', following.resolve)
      await page.addInitScript(() => {
        const { fetch } = window
        const held = Promise.withResolvers<void>()
        Object.assign(window, {
          hear: held.resolve,
          WebSocket: function () {
            throw new Error('no sockets here')
          },
          async fetch(...request: Parameters<typeof fetch>) {
            const response = await fetch(...request)
            if (!/^\/api\/sessions\/[^/]+\/stream$/.test(String(request[0]))) return response
            let heard = Promise.resolve()
            const later = new TransformStream<Uint8Array, Uint8Array>({
              async transform(chunk, out) {
                await heard
                out.enqueue(chunk)
                heard = held.promise
                ;(window as unknown as { follows(): void }).follows()
              },
            })
            return new Response(response.body?.pipeThrough(later) ?? null, response)
          },
        })
      })
    },
  })
  await following.promise
  expect(await tab.say('echo one')).toContain('one')
  await tab.page.evaluate('window.hear()')
  expect(await tab.say('echo two')).toContain('two')
  expect(await tab.page.locator('.question .bubble').allInnerTexts()).toEqual(['echo one', 'echo two'])
  expect(await tab.page.locator('.answer').count()).toBe(2)
  expect(tab.complaints).toEqual([])
})

test.each([
  ['by itself', (page: Page) => page.clock.runFor(20_000)],
  ['at once when asked to', (page: Page) => page.getByRole('button', { name: 'Try now' }).click()],
])('a daemon that comes back is found again without a reload, %s', async (_how, lookAgain) => {
  // Ended after the other one, which lives in its home.
  await using host = await daemon()
  const { port } = new URL(host.url)
  await using tab = await openTab(browser, host.url, { before: (page) => page.clock.install() })
  await tab.say('echo before')
  await host.stop()
  const lost = tab.page.getByText('The connection to the daemon is lost.')
  await lost.waitFor()
  // The page's time stands still, so that it makes no attempt of its own while the daemon starts.
  await tab.page.clock.pauseAt(Date.now() + 3_600_000)
  await using again = await daemon({ home: host.home, config: { listen_addr: `127.0.0.1:${port}` } })
  await lookAgain(tab.page)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  expect(await lost.count()).toBe(0)
  await tab.page.clock.resume()
  expect(await tab.say('echo after')).toContain('after')
  expect(again.url).toBe(host.url)
})

test('what says that the daemon is gone stays while the page tries again', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await host.stop()
  const button = tab.page.getByRole('button', { name: 'Try now' })
  await button.waitFor()
  await button.evaluate((element) => Object.assign(window, { first: element }))
  const attempt = tab.page.waitForEvent('requestfailed')
  await button.click()
  await attempt
  await tab.page.waitForEvent('requestfailed')
  expect(await tab.page.evaluate('window.first.isConnected')).toBe(true)
})

test('agents are made from the form, talked to, and deleted after a question', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.page.getByRole('button', { name: 'New agent' }).click()
  const dialog = tab.page.getByRole('dialog', { name: 'New agent' })
  await dialog.getByLabel('Name').fill('assistant')
  await dialog.getByRole('button', { name: 'Make the agent' }).click()
  await dialog.getByRole('alert').filter({ hasText: 'already' }).waitFor()
  await dialog.getByLabel('Name').fill('scribe "the second"')
  await dialog.getByLabel(/^Instructions/).fill('Write "things" down.\nBriefly.')
  await dialog.getByRole('button', { name: 'Make the agent' }).click()
  await tab.page.getByRole('heading', { level: 1, name: 'scribe "the second"' }).waitFor()
  expect(await tab.say('echo hello')).toContain('hello')
  await tab.page.getByRole('button', { name: 'More for scribe' }).click()
  await tab.page.getByRole('button', { name: 'Delete …' }).click()
  await tab.page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click()
  expect((await host.json('GET', '/api/agents')).body).toHaveLength(2)
  await tab.page.getByRole('button', { name: 'More for scribe' }).click()
  await tab.page.getByRole('button', { name: 'Delete …' }).click()
  await tab.page
    .getByRole('dialog')
    .getByRole('button', { name: /^Delete/ })
    .click()
  await tab.page.getByRole('heading', { level: 1, name: 'assistant' }).waitFor()
  expect((await host.json('GET', '/api/agents')).body).toHaveLength(1)
  expect(tab.complaints).toEqual([])
})

test('an agent is made from a template, under its name or another one', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  await tab.page.getByRole('button', { name: 'New agent' }).click()
  const dialog = tab.page.getByRole('dialog', { name: 'New agent' })
  await dialog.getByLabel(/^Template/).selectOption('translator')
  await dialog.getByText('Translates between languages').waitFor()
  await dialog.getByText('or better').waitFor()
  await dialog.getByText('file_read').waitFor()
  expect(await dialog.getByLabel('Name').inputValue()).toBe('translator')
  await dialog.getByLabel('Name').fill('tara')
  await dialog.getByLabel('Choose its skills').check()
  await dialog.getByText('One skill and no other').waitFor()
  for (const name of ['git-expert', 'sql-analyst']) await dialog.getByLabel(name, { exact: true }).check()
  await dialog.getByText('3 skills and no other').waitFor()
  await dialog.getByRole('button', { name: 'Make the agent' }).click()
  await tab.page.getByRole('heading', { level: 1, name: 'tara' }).waitFor()
  const { guide } = (await host.json('GET', '/api/templates/translator')).body
  const [idea = ''] = /(?<=^- ).*$/m.exec(guide) ?? []
  await tab.page.getByRole('button', { name: idea, exact: true }).waitFor()
  const [, made] = (await host.json('GET', '/api/agents')).body
  expect((await host.json('GET', `/api/agents/${made.id}`)).body).toMatchObject({
    description: expect.stringContaining('Translates between languages'),
    skills: ['writing-coach', 'git-expert', 'sql-analyst'],
    skills_mode: 'allowlist',
  })
  expect(tab.complaints).toEqual([])
})

test('an agent spawned elsewhere appears in the list by itself, in view however many there are', async () => {
  await using host = await daemon()
  for (let n = 1; n < 14; n++) await host.json('POST', '/api/agents', { manifest_toml: `name = "agent-${n}"` })
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "newcomer"' })
  const list = tab.page.getByRole('navigation', { name: 'Agents' })
  const entry = list.getByRole('button', { name: /newcomer/ })
  await entry.waitFor()
  await expect
    .poll(async () => {
      const [box, shown] = await Promise.all([entry.boundingBox(), list.getByRole('list').first().boundingBox()])
      return box && shown && box.y >= shown.y && box.y + box.height <= shown.y + shown.height + 1
    })
    .toBe(true)
})
