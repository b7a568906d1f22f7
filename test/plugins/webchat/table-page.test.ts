import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pluginText, writePlugin } from '../../support/plugin-folder.ts'
import { accessibilityProblems } from './accessibility.ts'
import { launchBrowser, openTab } from './browser.ts'

const PATH = '/pages/list/all/index.html'
const columns = "columns: [{ field: 'text', title: 'Text' }, { field: 'more', title: 'More' }]"
const actions = `[
  { title: 'Add', method: 'POST', route: '/api/list', fields: [{ name: 'text', title: 'Text', required: true }, { name: 'more', title: 'More' }] },
  { title: 'Mark', method: 'PUT', route: '/api/list/:key/mark' },
  { title: 'Delete', method: 'DELETE', route: '/api/list/:key', dangerous: true },
]`
const route = (method: string, path: string, answer: string, more: string): string =>
  `ctx.routes.add(defineRoute({ method: '${method}', path: '${path}', summary: 'A test', auth: 'bearer', effect: 'own', cost: 1,
     ${more} returns: v.any(), handle: async ({ params, body }: any) => { ${answer} } }))`
const text = pluginText('list', {
  before: 'let rows: any[] = []',
  members: `uses: { routes: ['/api/list', '/api/list/*'] }, pages: [
    { path: 'all', title: 'The list', group: 'Agents', table: { route: '/api/list', rows: 'items', ${columns}, empty: 'Nothing. Add something.' }, actions: ${actions} },
    { path: 'foreign', title: 'Foreign', table: { route: '/api/agents', ${columns} } },
    { path: 'flat', title: 'Flat', table: { route: '/api/list', ${columns} } }],`,
  setup: `const Key = v.object({ key: v.string() })
    ${route('GET', '/api/list', 'return { items: rows }', '')}
    ${route('POST', '/api/list', "rows = [...rows, { key: 'a/' + rows.length, ...body }]; return {}", 'body: v.object({ text: v.string(), more: v.optional(v.string()) }),')}
    ${route('PUT', '/api/list/:key/mark', 'rows = rows.map((row) => row.key === params.key ? { ...row, more: { marked: true } } : row); return {}', 'params: Key,')}
    ${route('DELETE', '/api/list/:key', 'rows = rows.filter((row) => row.key !== params.key); return {}', 'params: Key,')}
    return {}`,
})

let browser: Browser
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  // In a process of its own: what it declares has to get here from there.
  host = await startHost({ config: { plugins: { watch: true, isolated: ['list'] } } })
  await writePlugin(join(host.home, 'plugins', 'list'), text)
  await host.plugin('list', 'loaded')
})
afterAll(async () => {
  await host?.[Symbol.asyncDispose]()
  await browser?.close()
})
const cells = (page: Page): Promise<string[]> => page.locator('tbody td:not(:last-child)').allTextContents()

describe('a page that a plugin declares without HTML', () => {
  it('shows the rows of a route, and its buttons call the others', async () => {
    await using tab = await openTab(browser, host.url, { path: PATH })
    const { page } = tab
    const dialog = page.getByRole('dialog')
    await page.getByText('Nothing. Add something.').waitFor()
    await page.getByRole('button', { name: 'Add' }).click()
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByRole('alert').getByText('“Text” is needed.').waitFor()
    await dialog.getByLabel('Text').fill('<b>one</b>')
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    expect(await cells(page)).toEqual(['<b>one</b>', ''])
    await page.getByRole('button', { name: 'Mark: <b>one</b>' }).click()
    await page.getByRole('cell', { name: '{"marked":true}' }).waitFor()
    await page.getByRole('button', { name: 'Delete: <b>one</b>' }).click()
    await dialog.getByText('<b>one</b>').waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Nothing. Add something.').waitFor()
    expect(tab.complaints).toEqual([])
  })

  it.each([
    ['light', 1280],
    ['dark', 320],
  ] as const)(
    'keeps WCAG 2.2 AA in the %s theme, %i pixels wide, with rows and in a dialog',
    async (colorScheme, width) => {
      await host.json('POST', '/api/list', { text: 'a long name without a hyphen in it', more: '0123456789'.repeat(9) })
      await using tab = await openTab(browser, host.url, { path: PATH, colorScheme, viewport: { width, height: 800 } })
      await tab.page.getByRole('button', { name: /^Mark/ }).first().waitFor()
      expect(await accessibilityProblems(tab.page)).toEqual([])
      await tab.page.getByRole('button', { name: 'Add' }).click()
      await tab.page.getByRole('dialog').waitFor()
      expect(await accessibilityProblems(tab.page)).toEqual([])
    },
  )

  it('is in the navigation under its heading, without a frame', async () => {
    await using tab = await openTab(browser, host.url, { path: PATH })
    const { page } = tab
    const link = page.getByRole('region', { name: 'Agents' }).getByRole('link', { name: 'The list' })
    expect(await link.getAttribute('aria-current')).toBe('page')
    await page.getByRole('heading', { name: 'The list', level: 1 }).waitFor()
    expect(await page.locator('iframe').count()).toBe(0)
  })

  it('does not reach the routes of others', async () => {
    await using tab = await openTab(browser, host.url, { path: '/pages/list/foreign/index.html' })
    await tab.page.getByRole('alert').getByText('GET /api/agents is no route of the plugin "list"').waitFor()
  })

  it('says when the answer is no list', async () => {
    await using tab = await openTab(browser, host.url, { path: '/pages/list/flat/index.html' })
    await tab.page.getByRole('alert').getByText('The answer of /api/list has no list.').waitFor()
  })

  it('has no other file', async () => {
    for (const path of ['/pages/list/all/index.js', '/frames/list/all/index.html'])
      expect((await host.fetch(path)).status).toBe(404)
  })

  it.each([
    ["{ path: 'a', title: 'A' }", 'either a file or a table'],
    [`{ path: 'a', title: 'A', file: 'a.html', table: { route: '/api/a', ${columns} } }`, 'either a file or a table'],
    ["{ path: 'a', title: 'A', table: { route: 'https://example.org/', columns: [] } }", 'the path of a route'],
    ["{ path: 'a', title: 'A', table: { route: '/api/a', columns: [] } }", 'must not be empty'],
    [
      `{ path: 'a', title: 'A', table: { route: '/api/a', ${columns} }, actions: [{ title: 'x', method: 'GET', route: '/api/a' }] }`,
      'POST, PUT, PATCH or DELETE',
    ],
  ])('is rejected when it declares %s', async (page, reason) => {
    await writePlugin(join(host.home, 'plugins', 'wrong'), pluginText('wrong', { members: `pages: [${page}],` }))
    await host.plugin('wrong', 'failed', ({ error }) => error?.includes(reason) === true)
  })
})
