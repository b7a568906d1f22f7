import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage, Tab } from './browser.ts'

let browser: Browser
let built: BuiltPage
let fake: FakeProvider
let host: TestHost
let tab: Tab
beforeAll(async () => {
  ;[browser, built, fake] = await Promise.all([launchBrowser(), builtPage(), startFakeProvider()])
  host = await startHost({
    config: {
      default_provider: 'openai',
      default_model: 'gpt-5-mini',
      providers: { openai: { api_key: 'k-123456789', base_url: fake.url } },
      plugins: { webchat: { page_dir: built.folder } },
    },
  })
  tab = await openTab(browser, host.url)
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([host?.[Symbol.asyncDispose](), fake?.[Symbol.asyncDispose]()])
})

/**
 * The longest the page may be deaf: processor time of its own thread, so that it says the same on a machine that others
 * use too. Far above what it takes, and far below what a person calls frozen.
 */
const mostMs = 1000
interface TraceEvent {
  readonly name: string
  readonly tid: number
  readonly pid: number
  readonly tdur?: number
  readonly args?: { readonly name?: string }
}
/** The longest task of the page while something happens. */
async function longestTask(happening: () => Promise<void>): Promise<number> {
  // Of all categories that hold the tasks of a thread, the one that slows the page down least.
  await browser.startTracing(tab.page, { categories: ['disabled-by-default-devtools.timeline', '__metadata'] })
  try {
    await happening()
  } finally {
    trace = JSON.parse((await browser.stopTracing()).toString('utf8'))
  }
  const threads = new Set(
    trace.traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  )
  const tasks = trace.traceEvents.filter(({ pid, tid, tdur }) => tdur !== undefined && threads.has(`${pid} ${tid}`))
  // Without any the measure would hold whatever happened.
  expect(tasks.length).toBeGreaterThan(10)
  return Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1000
}
let trace: { readonly traceEvents: readonly TraceEvent[] } = { traceEvents: [] }
const times = (text: string, n: number): string => text.repeat(n)

test.each<[name: string, markdown: string, expected: RegExp | undefined]>([
  [
    '1,000 nested list levels',
    Array.from({ length: 1000 }, (_, n) => `${times('  ', n)}- level ${n}`).join('\n'),
    /level 999/,
  ],
  ['2,000 list markers on a line', `${times('- ', 2000)}end`, /end/],
  ['3,000 nested quotes', `${times('>', 3000)} quoted`, /quoted/],
  ['1,000 nested quotes with blanks', `${times('> ', 1000)}quoted`, /quoted/],
  ['60,000 brackets', times('[', 60_000), undefined],
  ['30,000 halves of an image', times('![', 30_000), undefined],
  ['nested emphasis', `${times('*a **b ', 8000)}${times(' b** a*', 8000)}`, undefined],
  ['open emphasis without blanks', times('a_', 60_000), undefined],
  [
    '50,000 backquotes of different lengths',
    Array.from({ length: 300 }, (_, n) => `${times('`', n)}a`).join(''),
    undefined,
  ],
  ['a table of 3,000 rows', `|a|b|c|\n|-|-|-|\n${times('|one|**two**|[x](http://a.example)|\n', 3000)}`, undefined],
  [
    'a table of 500 columns',
    `${times('|a', 500)}|\n${times('|-', 500)}|\n${times(`${times('|b', 500)}|\n`, 20)}`,
    undefined,
  ],
  ['a megabyte of code', `\`\`\`js\n${times('const answer = 42 // <b>&amp;\n', 35_000)}\`\`\``, /const answer = 42/],
  ['100,000 dollar signs', times('$', 100_000), undefined],
  ['50,000 prices', times('it costs $5 ', 50_000), /it costs/],
  ['50,000 starts of formulas', times(String.raw`\( \[ $`, 50_000), undefined],
  ['25,000 formulas in a paragraph', times('$$ x $$ ', 25_000), undefined],
  ['3,000 formulas', times('$$\nE = mc^2\n$$\n\n', 3000), /mc/],
  ['2,000 blocks of code', times('```ts\nconst a: number = 1\n```\n\n', 2000), /const a/],
  ['5,000 links', times('[a link](https://example.com/path?query=1) ', 5000), /a link/],
  ['10,000 list items', times('- an item with *stars*\n', 10_000), /an item/],
  ['20,000 paragraphs', times('Some words.\n\n', 20_000), /Some words/],
])('%s leave the page responsive', async (_name, markdown, expected) => {
  const { page } = tab
  fake.always({ text: [markdown] })
  await page.getByRole('button', { name: 'New conversation' }).isEnabled()
  const answer = page.locator('.answer').last()
  const longest = await longestTask(async () => {
    await page.getByRole('textbox', { name: /^Message to/ }).fill('go on')
    await page.keyboard.press('Enter')
    await answer.locator('.answer-foot').waitFor()
    await answer.locator('.prose:not([aria-busy="true"]) .block').first().waitFor()
  })
  if (expected) expect(await answer.locator('.prose').textContent()).toMatch(expected)
  expect(longest).toBeLessThan(mostMs)
  expect(tab.complaints).toEqual([])
  // The next one starts with an empty page.
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
})

test('a long answer can be copied, found and printed whole, and its end is a key away', async () => {
  const { page } = tab
  const text = Array.from({ length: 1900 }, (_, n) => `Paragraph ${n} of many words.`).join('\n\n')
  fake.always({ text: text.match(/[^]{1,500}/g) ?? [] })
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await tab.say('go on')
  const answer = page.locator('.answer').last()
  await answer.locator('.prose:not([aria-busy="true"])').waitFor()
  expect(await answer.locator('.prose p').count()).toBe(1900)
  await answer.getByRole('button', { name: 'Copy this answer' }).click()
  await answer.getByRole('button', { name: 'Copied' }).waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(text)
  const scroll = page.getByRole('region', { name: 'Conversation with assistant' })
  await scroll.press('Home')
  await expect.poll(() => scroll.evaluate(({ scrollTop }) => scrollTop)).toBe(0)
  await page.getByRole('button', { name: 'Latest' }).click()
  await expect.poll(() => answer.locator('.prose p').last().isVisible()).toBe(true)
  await page.emulateMedia({ media: 'print' })
  const height = await page.evaluate(() => document.documentElement.scrollHeight)
  expect(height).toBeGreaterThan(1900 * 20)
  expect(await page.getByRole('button').count()).toBe(0)
  await page.emulateMedia({ media: 'screen' })
  expect(tab.complaints).toEqual([])
})
