import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { toHtml } from '../../../plugins/docs/markdown.ts'
import { accessibilityProblems } from '../webchat/accessibility.ts'
import { builtPage, launchBrowser, openTab } from '../webchat/browser.ts'

const docs = fileURLToPath(new URL('../../../docs', import.meta.url))
const names = readdirSync(docs, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => name.slice(0, -'.md'.length))

let browser: Browser
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    memory: true,
    plugins: ['webchat', 'docs'],
    config: { plugins: { webchat: { page_dir: (await builtPage()).folder } } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})
const textOf = async (path: string): Promise<string> => await (await host.fetch(path)).text()

describe('the guide', () => {
  it('has every file of docs as a page, and links only to pages and headings that it has', async () => {
    const paths = ['/docs/guide', ...names.map((name) => `/docs/guide/${name}`)]
    const pages = new Map<string, string>()
    for (const path of paths) {
      const answer = await host.fetch(path)
      expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 200, 'text/html; charset=utf-8'])
      pages.set(path, await answer.text())
    }
    const broken: string[] = []
    for (const [path, html] of pages)
      for (const [, href = ''] of html.matchAll(/<a href="([^"]+)"/g)) {
        if (/^(?:https?:|mailto:)|^\/$/.test(href)) continue
        const [page = '', anchor] = href.split('#')
        const target = pages.get(page === '' ? path : page) ?? (await textOf(page))
        const isThere = anchor === undefined || target.includes(`id="${anchor}"`)
        if (target.includes('There is no page') || !isThere) broken.push(`${path}: ${href}`)
      }
    expect(broken).toEqual([])
  })

  it('shows HTML of the documents as text, and no picture or link but to pages and the web', () => {
    const html = toHtml(
      '<b onclick="x()">hi</b> <script>x()</script>\n\n[go](javascript:x()) ![p](https://e.org/p.png)',
      (href) => (href.startsWith('https:') ? href : undefined),
    )
    expect(html).not.toMatch(/<(?:b|script|img|a)\b/)
    expect(html).toContain('&#60;script&#62;')
  })

  it.each(['no-such-page', '../package', '..%2fpackage.json', '%2e%2e/README', 'agents%00'])(
    'has no page %s, and says what to do',
    async (name) => {
      const answer = await host.fetch(`/docs/guide/${name}`)
      expect(answer.status).toBe(404)
    },
  )

  it('shows a file that is linked beside the pages as code', async () => {
    expect(await textOf('/docs/guide/deployment/compose.yaml')).toContain('data-language="yaml"')
  })

  it('finds words in titles and texts, marks them, and links to the section', async () => {
    await using tab = await openTab(browser, host.url, { path: '/docs/guide/agents' })
    const { page } = tab
    const search = page.getByRole('searchbox', { name: 'Search the guide' })
    await search.fill('idempotency keys')
    await search.press('Enter')
    const first = page.locator('.results li').first()
    await first.getByRole('link', { name: 'REST, SSE, WebSocket and the OpenAI API: Idempotency keys' }).click()
    await page.getByRole('heading', { name: 'Idempotency keys' }).waitFor()
    expect(page.url()).toBe(`${host.url}/docs/guide/api#idempotency-keys`)
    await page.goto(`${host.url}/docs/guide?q=%3Cb%3E`)
    await page.getByRole('heading', { name: '<b>' }).waitFor()
    expect(tab.complaints).toEqual([])
  })

  it('says so when nothing is found', async () => {
    expect(await textOf('/docs/guide?q=qqqzzz')).toContain('Nothing is found for “qqqzzz”')
    expect((await host.fetch(`/docs/guide?q=${'a'.repeat(201)}`)).status).toBe(400)
  })

  it('is in the navigation of all pages, and its own navigation is the table of the README', async () => {
    await using tab = await openTab(browser, host.url, { path: '/docs/guide/channels/telegram' })
    const { page } = tab
    const pages = page.getByRole('navigation', { name: 'Pages' }).getByRole('region', { name: 'Operations' })
    await expect.poll(() => pages.getByRole('link').allInnerTexts()).toEqual(['API reference', 'Guide'])
    const contents = page.getByRole('navigation', { name: 'Guide' })
    expect(await contents.locator('[aria-current]').allInnerTexts()).toEqual(['Channels'])
    await contents.getByRole('link', { name: 'budgets', exact: false }).first().click()
    await page.getByRole('heading', { level: 2, name: 'Budgets' }).waitFor()
    await page.getByRole('link', { name: 'API reference' }).click()
    await page.waitForURL('**/docs')
  })

  it('copies a block of code', async () => {
    await using tab = await openTab(browser, host.url, {
      path: '/docs/guide/getting-started',
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await tab.page.getByRole('button', { name: 'Copy this block' }).first().click()
    await tab.page.getByText('Copied').waitFor()
    expect(await tab.page.evaluate(() => navigator.clipboard.readText())).toBe('npm install\nnpm start')
  })

  it.each([
    ['light', 1280],
    ['dark', 320],
  ] as const)('keeps WCAG 2.2 AA in the %s theme, %i pixels wide', async (colorScheme, width) => {
    for (const path of ['/docs/guide', '/docs/guide/memory', '/docs/guide?q=agent']) {
      await using tab = await openTab(browser, host.url, { path, colorScheme, viewport: { width, height: 800 } })
      await tab.page.locator('.has-nav').waitFor()
      expect([path, ...(await accessibilityProblems(tab.page))]).toEqual([path])
    }
  })
})
