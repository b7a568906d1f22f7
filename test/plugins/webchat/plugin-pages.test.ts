import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pluginText, writePlugin } from '../../support/plugin-folder.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage } from './browser.ts'

let built: BuiltPage
let browser: Browser
let host: TestHost
let folder: string
beforeAll(async () => {
  built = await builtPage()
  browser = await launchBrowser()
  host = await startHost({ config: { plugins: { webchat: { page_dir: built.folder }, watch: true } } })
  folder = join(host.home, 'plugins', 'weather')
  await mkdir(join(folder, 'page'), { recursive: true })
  await writeFile(
    join(folder, 'page', 'today.html'),
    '<!doctype html><html lang="en"><title>Weather</title><link rel="icon" href="data:,"><p id="sky">unknown</p>' +
      '<script type="module" src="sky.js"></script>',
  )
  await writeFile(join(folder, 'page', 'sky.js'), "document.querySelector('#sky').textContent = 'clear'\n")
  await writeFile(join(folder, 'page', 'private.txt'), 'not for the web')
  await symlink(join(folder, 'page', 'private.txt'), join(folder, 'page', 'link.js'))
  await writePlugin(
    folder,
    withPages(
      "{ path: 'today', title: 'Weather today', file: 'page/today.html', assets: ['sky.js', 'link.js', 'missing.js'] }",
    ),
  )
  await host.plugin('weather', 'loaded')
})
afterAll(async () => {
  await host?.[Symbol.asyncDispose]()
  await browser?.close()
})
const withPages = (pages: string): string => pluginText('weather', { members: `pages: [${pages}],` })

describe('the page of a plugin', () => {
  it('is in the navigation, opens, and runs its own script only', async () => {
    await using tab = await openTab(browser, host.url)
    const { page } = tab
    await page.getByRole('link', { name: 'Manage' }).click()
    const pages = page.getByRole('navigation', { name: 'Pages' })
    // Under the heading of those that name none.
    await pages.getByRole('region', { name: 'More' }).getByRole('link', { name: 'Weather today' }).click()
    await page.getByText('clear').waitFor()
    expect(page.url()).toBe(`${host.url}/pages/weather/today/today.html`)
    expect(tab.complaints).toEqual([])
  })

  it('is listed under its heading, in the order of the headings', async () => {
    const { pages } = (await host.json('GET', '/api/pages')).body
    const groups = [...new Set(pages.map(({ group }: { group: string }) => group))]
    expect(groups).toEqual(['Agents', 'Automation', 'Connections', 'Operations', 'More'])
    expect(pages.at(-1)).toMatchObject({ plugin: 'weather', title: 'Weather today', group: 'More' })
  })

  it('on a narrow screen the navigation opens with a button, and Escape closes it', async () => {
    await using tab = await openTab(browser, host.url, {
      path: '/pages/goals/goals/goals.html',
      viewport: { width: 360, height: 640 },
    })
    const { page } = tab
    const button = page.getByRole('button', { name: 'Menu' })
    await button.click()
    const current = page.getByRole('link', { name: 'Goals' })
    await current.waitFor()
    expect(await current.getAttribute('aria-current')).toBe('page')
    await page.keyboard.press('Escape')
    await current.waitFor({ state: 'hidden' })
    expect(await button.evaluate((element) => element === document.activeElement)).toBe(true)
    expect(tab.complaints).toEqual([])
  })

  it('leaves room for the agents', async () => {
    const made = await Promise.all(
      ['one', 'two', 'three'].map((name) => host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"` })),
    )
    await using tab = await openTab(browser, host.url, { viewport: { width: 1280, height: 850 } })
    await tab.page.getByRole('link', { name: 'Manage' }).waitFor()
    const agents = tab.page.locator('.agents > ul')
    await agents.getByRole('button', { name: /three/ }).waitFor()
    const cutOff = (): Promise<number> => agents.evaluate((list) => list.scrollHeight - list.clientHeight)
    // Heights are rounded.
    await expect.poll(cutOff).toBeLessThanOrEqual(1)
    for (const { body } of made) await host.json('DELETE', `/api/agents/${body.agent_id}`)
  })

  it('of moving in says what it does from the start, on a narrow screen too', async () => {
    await using tab = await openTab(browser, host.url, { viewport: { width: 360, height: 640 } })
    await tab.page.route('**/api/migrate/detect', async (route) => {
      await tab.page.getByText('Looking for homes of other systems').waitFor()
      const home = {
        type: 'openfang',
        path: '/home/ada/.openfang',
        version: 'config.toml',
        agents_found: 2,
        skills_found: 1,
      }
      await route.fulfill({ json: { sources: [home] } })
    })
    await tab.page.goto(`${host.url}/pages/migrate/migrate/migrate.html`)
    await tab.page.getByRole('region', { name: 'OpenFang · /home/ada/.openfang' }).waitFor()
    await tab.page.getByText('One home is found.').waitFor()
    expect(await tab.page.getByText('Looking for homes of other systems').isHidden()).toBe(true)
    const overflow = await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect(overflow).toBeLessThanOrEqual(0)
    expect(tab.complaints).toEqual([])
  })

  it('is listed by the API and served with the strict policy', async () => {
    expect((await host.json('GET', '/api/pages')).body.pages).toContainEqual({
      plugin: 'weather',
      title: 'Weather today',
      group: 'More',
      url: '/pages/weather/today/today.html',
    })
    const page = await host.fetch('/pages/weather/today/today.html')
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
    const script = await host.fetch('/pages/weather/today/sky.js')
    expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
  })

  it.each([
    ['what is not declared', 'weather/today/private.txt', 404],
    ['the code of the plugin', 'weather/today/../index.ts', 404],
    ['the code of the plugin, encoded', 'weather/today/%2e%2e%2findex.ts', 404],
    ['a declared name that is a link', 'weather/today/link.js', 403],
    ['a declared name without a file', 'weather/today/missing.js', 404],
    ['another page', 'weather/tomorrow/today.html', 404],
    ['another plugin', 'webchat/today/today.html', 404],
    ['a file beside those that pages share', 'kit/..%2f..%2findex.ts', 404],
    ['what pages do not share', 'kit/secret.js', 404],
  ])('does not serve %s', async (_what, path, status) => {
    expect((await host.fetch(`/pages/${path}`)).status).toBe(status)
  })

  it.each([
    ["{ path: 'To Day', title: 'x', file: 'a.html' }", 'kebab-case'],
    ["{ path: 'a', title: 'x', file: '../../etc/passwd.html' }", 'relative path'],
    ["{ path: 'a', title: 'x', file: 'a.js' }", 'HTML'],
    ["{ path: 'a', title: 'x', file: 'a.html', url: 'https://example.org' }", 'path of a route'],
    ["{ path: 'a', title: 'x\\u0000', file: 'a.html' }", 'control characters'],
    ["{ path: 'a', title: 'x', file: 'a.html' }, { path: 'a', title: 'y', file: 'b.html' }", 'unique'],
  ])('is rejected when it declares %s', async (pages, reason) => {
    const other = join(host.home, 'plugins', 'wrong')
    await writePlugin(other, withPages(pages).replace("'weather'", "'wrong'"))
    await host.plugin('wrong', 'failed', ({ error }) => error?.includes(reason) === true)
    await rm(other, { recursive: true })
  })

  it('goes with its plugin', async () => {
    const other = join(host.home, 'plugins', 'brief')
    await mkdir(other, { recursive: true })
    await writeFile(join(other, 'index.html'), '<!doctype html><title>Brief</title>')
    const pages = "{ path: 'all', title: 'Brief', file: 'index.html' }"
    await writePlugin(other, withPages(pages).replace("'weather'", "'brief'"))
    await host.plugin('brief', 'loaded')
    expect((await host.fetch('/pages/brief/all/index.html')).status).toBe(200)
    await rm(other, { recursive: true })
    await expect.poll(async () => (await host.fetch('/pages/brief/all/index.html')).status).toBe(404)
  })
})
