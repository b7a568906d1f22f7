import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Download, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems } from './accessibility.ts'
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
const listOf = (page: Page) => page.getByRole('region', { name: 'Conversations' })
const titles = (page: Page) => () => listOf(page).locator('.session-title').allInnerTexts()
const choose = async (page: Page, title: string, action: string): Promise<void> => {
  await listOf(page)
    .getByRole('button', { name: `Actions for ${title}` })
    .click()
  await page.getByRole('menuitem', { name: action, exact: true }).click()
}
const startNew = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
}
const sessionIds = async (host: TestHost): Promise<readonly string[]> =>
  (await host.json('GET', '/api/sessions')).body.sessions.map(({ id }: { id: string }) => id)
const textOf = async (download: Download): Promise<string> => readFile(await download.path(), 'utf8')

test('a conversation is renamed, by keyboard alone', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo what to plant')
  await listOf(page).getByRole('button', { name: 'Actions for echo what to plant' }).focus()
  await page.keyboard.press('Enter')
  const focused = () => page.evaluate(() => document.activeElement?.textContent)
  await expect.poll(focused).toBe('Pin')
  await page.keyboard.press('ArrowUp')
  expect(await focused()).toBe('Delete')
  await page.keyboard.press('Home')
  await page.keyboard.press('ArrowDown')
  expect(await focused()).toBe('Rename')
  await page.keyboard.press('Escape')
  await expect.poll(focused).toBe('Actions for echo what to plant')
  await page.keyboard.press('Enter')
  await expect.poll(focused).toBe('Pin')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('textbox', { name: 'Name' }).fill('Plans for May')
  await page.keyboard.press('Enter')
  await expect.poll(titles(page)).toEqual(['Plans for May'])
  expect((await host.json('GET', '/api/sessions')).body.sessions[0].label).toBe('Plans for May')
  expect(tab.complaints).toEqual([])
})

test('a pinned conversation stands first, in every tab and after a reload, until it is unpinned', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo one')
  await startNew(page)
  await tab.say('echo two')
  const other = await page.context().newPage()
  await other.goto(host.url)
  await expect.poll(titles(other)).toEqual(['echo two', 'echo one'])
  await choose(page, 'echo one', 'Pin')
  for (const each of [page, other]) await expect.poll(titles(each)).toEqual(['echo one', 'echo two'])
  await screenshot(tab, 'pinned')
  await page.reload()
  await expect.poll(titles(page)).toEqual(['echo one', 'echo two'])
  await listOf(page).getByText('Pinned').waitFor()
  await choose(page, 'echo one', 'Unpin')
  await expect.poll(titles(page)).toEqual(['echo two', 'echo one'])
  expect(await page.evaluate(() => localStorage.length)).toBe(0)
  expect(tab.complaints).toEqual([])
})

test('a message is found by its words, whichever agent it was for, and its conversation opened', async () => {
  await using host = await daemon()
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "gardener"' })
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo tomatoes need sun')
  await page.getByRole('button', { name: /gardener/ }).click()
  await page.getByRole('heading', { level: 1, name: 'gardener' }).waitFor()
  await tab.say('echo basil likes water')
  const search = page.getByRole('searchbox', { name: 'Search all messages' })
  await search.fill('sun tomatoes')
  const found = page.getByRole('list', { name: 'Messages that were found' }).getByRole('button')
  await found.filter({ hasText: 'You to assistant' }).waitFor()
  await screenshot(tab, 'search')
  expect(await accessibilityProblems(page)).toEqual([])
  await found.filter({ hasText: 'You to assistant' }).click()
  await page.getByRole('heading', { level: 1, name: 'assistant' }).waitFor()
  await page.locator('.bubble', { hasText: 'tomatoes need sun' }).waitFor()
  await search.fill('zebra')
  await page.getByText('No message has these words.').waitFor()
  await search.press('Escape')
  await expect.poll(titles(page)).toEqual(['echo tomatoes need sun'])
  expect(tab.complaints).toEqual([])
})

test('what cannot be searched is said', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  await page.route('**/api/sessions/search**', (route) =>
    route.fulfill({ status: 503, json: { error: { code: 'service_unavailable', message: 'The disk is full' } } }),
  )
  await page.getByRole('searchbox', { name: 'Search all messages' }).fill('anything')
  await listOf(page).getByRole('alert').filter({ hasText: 'The disk is full' }).waitFor()
})

test('a whole conversation is saved as Markdown and as JSON', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo **bold** words')
  await tab.say('use system_time {}')
  const agent = (await host.json('GET', '/api/agents')).body[0].id
  const session = (await host.json('GET', `/api/agents/${agent}/session`)).body
  const save = async (format: string): Promise<Download> => {
    const download = page.waitForEvent('download')
    await choose(page, 'echo **bold** words', `Export as ${format}`)
    return download
  }
  const markdown = await save('Markdown')
  expect(markdown.suggestedFilename()).toBe('echo-bold-words.md')
  const text = await textOf(markdown)
  expect(text).toMatch(/^# echo \*\*bold\*\* words\n\n## You\n\n_.+_\n\necho \*\*bold\*\* words\n\n## assistant\n/)
  expect(text).toContain('- Used `system_time`')
  const json = await save('JSON')
  expect(json.suggestedFilename()).toBe('echo-bold-words.json')
  expect(JSON.parse(await textOf(json)).messages).toEqual(session.messages)
  expect(tab.complaints).toEqual([])
})

test('an export has every message, also of a conversation longer than one answer of the daemon', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  for (const text of ['echo one', 'echo two', 'echo three']) await tab.say(text)
  // The daemon gives two messages at a time.
  await page.route('**/api/sessions/*?limit=1000*', (route) =>
    route.continue({ url: route.request().url().replace('limit=1000', 'limit=2') }),
  )
  const download = page.waitForEvent('download')
  await choose(page, 'echo one', 'Export as JSON')
  const { messages } = JSON.parse(await textOf(await download))
  expect(
    messages.map(({ content }: { content: string }) => content).filter((text: string) => text.startsWith('echo')),
  ).toEqual(['echo one', 'echo two', 'echo three'])
})

test('a deleted conversation comes back with Undo, and the daemon never heard of it', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo keep me')
  const [before] = await sessionIds(host)
  await choose(page, 'echo keep me', 'Delete')
  await page.getByText('“echo keep me” is deleted.').waitFor()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
  await expect.poll(titles(page)).toEqual(['No messages yet'])
  await screenshot(tab, 'undo')
  expect(await accessibilityProblems(page)).toEqual([])
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Undo')
  await page.keyboard.press('Enter')
  await page.locator('.bubble', { hasText: 'echo keep me' }).waitFor()
  await expect.poll(titles(page)).toEqual(['echo keep me'])
  expect(await sessionIds(host)).toContain(before)
  expect(tab.complaints).toEqual([])
})

test('a deletion is sent when its notice ends, and the time stands still under the pointer', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url, { before: (page) => page.clock.install() })
  const { page } = tab
  await tab.say('echo one')
  await startNew(page)
  await tab.say('echo two')
  const deletions: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'DELETE') deletions.push(request.url())
  })
  await choose(page, 'echo one', 'Delete')
  const notice = page.getByText('“echo one” is deleted.')
  await notice.hover()
  await page.clock.runFor(60_000)
  expect(deletions).toEqual([])
  await page.mouse.move(600, 300)
  const sent = page.waitForResponse((response) => response.request().method() === 'DELETE')
  await page.clock.runFor(10_000)
  expect((await sent).status()).toBe(200)
  await notice.waitFor({ state: 'detached' })
  await expect.poll(titles(page)).toEqual(['echo two'])
  expect(await sessionIds(host)).toHaveLength(1)
  expect(tab.complaints).toEqual([])
})

test('a deletion is sent when the page is left', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo one')
  await startNew(page)
  await tab.say('echo two')
  await choose(page, 'echo one', 'Delete')
  await page.getByText('“echo one” is deleted.').waitFor()
  expect(await sessionIds(host)).toHaveLength(2)
  await page.close()
  await expect.poll(async () => (await sessionIds(host)).length).toBe(1)
})

test('a conversation that the daemon does not delete is listed again, with the reason', async () => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url, { before: (page) => page.clock.install() })
  const { page } = tab
  await tab.say('echo one')
  await startNew(page)
  await tab.say('echo two')
  await page.route('**/api/sessions/*', (route) =>
    route.request().method() === 'DELETE'
      ? route.fulfill({ status: 403, json: { error: { code: 'forbidden', message: 'This device may not delete' } } })
      : route.continue(),
  )
  await choose(page, 'echo one', 'Delete')
  await expect.poll(titles(page)).toEqual(['echo two'])
  await page.mouse.move(600, 300)
  await page.clock.runFor(10_000)
  await page.getByText('It could not be deleted: This device may not delete').waitFor()
  await expect.poll(titles(page)).toEqual(['echo two', 'echo one'])
  await page.getByRole('button', { name: 'Dismiss' }).click()
  await page.getByText('It could not be deleted').waitFor({ state: 'detached' })
})

test('a new conversation leaves the old one in the list', async () => {
  await using stage = await openChat({ config: config() })
  const [one, two] = [byHand(), byHand()]
  stage.fake.script({ text: one.text }, { text: two.text })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  one.say('the answer')
  one.end()
  await tab.say('first')
  await startNew(page)
  await expect.poll(titles(page)).toEqual(['No messages yet', 'first'])
  await listOf(page)
    .getByRole('button', { name: /^first/ })
    .click()
  await page.locator('.answer', { hasText: 'the answer' }).waitFor()
  expect(tab.complaints).toEqual([])
})

test('what is written in one tab goes to the conversation that this tab shows, also when another tab just left it', async () => {
  await using host = await daemon()
  // The stream that would tell the left tab comes too late.
  await using left = await openTab(browser, host.url, {
    before: (page) => page.route('**/api/sessions/*/stream', () => undefined).then(() => undefined),
  })
  await left.say('echo from the left')
  await using right = await openTab(browser, host.url)
  await right.page.locator('.bubble', { hasText: 'echo from the left' }).waitFor()
  await startNew(right.page)
  await right.say('echo from the right')
  await left.say('echo left again')
  const [agent] = (await host.json('GET', '/api/agents')).body
  const { sessions } = (await host.json('GET', `/api/agents/${agent.id}/sessions`)).body
  const said = await Promise.all(
    sessions.map(async ({ id }: { id: string }) =>
      (await host.json('GET', `/api/sessions/${id}`)).body.messages
        .filter(({ role }: { role: string }) => role === 'User')
        .map(({ content }: { content: string }) => content),
    ),
  )
  expect(said).toEqual([['echo from the right'], ['echo from the left', 'echo left again']])
})

test('among many agents one is found by its name, and Enter opens it', async () => {
  await using host = await daemon()
  for (let n = 1; n < 12; n++) await host.json('POST', '/api/agents', { manifest_toml: `name = "agent-${n}"` })
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await tab.say('echo hello')
  const search = page.getByRole('searchbox', { name: 'Find an agent' })
  const list = page.getByRole('list', { name: 'Agents' })
  await expect.poll(() => list.getByRole('button').count()).toBe(12)
  await screenshot(tab, 'many-agents')
  // The conversations have their place beside so many agents.
  expect((await listOf(page).boundingBox())?.height).toBeGreaterThan(200)
  expect(await accessibilityProblems(page)).toEqual([])
  await search.fill('nobody')
  await page.getByText('No agent is called that.').waitFor()
  await search.fill('AGENT-11')
  await expect.poll(() => list.getByRole('button').count()).toBe(1)
  await search.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'agent-11' }).waitFor()
  expect(await search.inputValue()).toBe('')
  await expect.poll(() => list.getByRole('button').count()).toBe(12)
  expect(tab.complaints).toEqual([])
})

test.each(['light', 'dark'] as const)('on a phone the drawer holds all of it, %s', async (colorScheme) => {
  await using host = await daemon()
  await using tab = await openTab(browser, host.url, {
    viewport: { width: 360, height: 640 },
    colorScheme,
    hasTouch: true,
    isMobile: true,
  })
  const { page } = tab
  await tab.say('echo the first thing')
  await page.getByRole('button', { name: 'Agents', exact: true }).click()
  await listOf(page).getByRole('button', { name: 'Actions for echo the first thing' }).tap()
  const menu = page.getByRole('menu')
  await menu.waitFor()
  await screenshot(tab, `phone-menu-${colorScheme}`)
  const box = await menu.boundingBox()
  expect(box && box.x >= 0 && box.x + box.width <= 360 && box.y + box.height <= 640).toBe(true)
  await page.keyboard.press('Escape')
  await menu.waitFor({ state: 'hidden' })
  expect(await page.locator('nav.open').count()).toBe(1)
  expect(await accessibilityProblems(page)).toEqual([])
  await listOf(page).getByRole('button', { name: 'Actions for echo the first thing' }).tap()
  await page.getByRole('menuitem', { name: 'Delete' }).tap()
  await page.getByText('is deleted.').waitFor()
  await screenshot(tab, `phone-undo-${colorScheme}`)
  await page.getByRole('button', { name: 'Undo' }).tap()
  await expect.poll(titles(page)).toEqual(['echo the first thing'])
})
