import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems } from './accessibility.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { Tab } from './browser.ts'

let browser: Browser
let fake: FakeProvider
let host: TestHost
beforeAll(async () => {
  ;[browser, fake] = await Promise.all([launchBrowser(), startFakeProvider()])
  host = await startHost({
    config: {
      default_provider: 'openai',
      default_model: 'gpt-5-mini',
      providers: { openai: { api_key: 'k-123456789', base_url: fake.url } },
      plugins: { webchat: { page_dir: (await builtPage()).folder } },
    },
  })
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([host?.[Symbol.asyncDispose](), fake?.[Symbol.asyncDispose]()])
})
// Each begins with an empty conversation.
beforeEach(async () => {
  const { body: agents } = await host.json('GET', '/api/agents')
  await host.json('POST', `/api/agents/${agents[0].id}/session/reset`, {})
})

const screenshot = async ({ page }: Tab, name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}
async function answered(tab: Tab, text: string) {
  fake.script({ text: [text] })
  await tab.page.getByRole('button', { name: 'New conversation' }).isEnabled()
  await tab.say('go on')
  return tab.page.locator('.answer').last().locator('.prose')
}

test('code is coloured in its language, and copied as it is', async () => {
  await using tab = await openTab(browser, host.url, { permissions: ['clipboard-read', 'clipboard-write'] })
  const code = '// greets\nexport const greet = (name: string) => `Hello ${name}`\n'
  const prose = await answered(tab, `\`\`\`ts\n${code}\`\`\``)
  await prose.locator('.token-keyword', { hasText: 'export' }).waitFor()
  expect(await prose.locator('.token-comment').innerText()).toBe('// greets')
  expect(await prose.locator('pre').textContent()).toBe(code.trimEnd())
  expect(await prose.locator('pre [style]').count()).toBe(0)
  await prose.getByRole('button', { name: 'Copy this ts block' }).click()
  await prose.getByText('Copied').waitFor()
  expect(await tab.page.evaluate(() => navigator.clipboard.readText())).toBe(code.trimEnd())
  expect(tab.complaints).toEqual([])
})

test('the code for colours and formulas is loaded by the first block that needs it', async () => {
  const loaded: string[] = []
  await using tab = await openTab(browser, host.url, {
    async before(page) {
      page.on('request', (request) => {
        loaded.push(request.url().replace(/.*\/(.*)-[^-]{8}\.js$/, '$1'))
      })
    },
  })
  await answered(tab, 'Plain words.')
  expect(loaded.filter((name) => /^(?:typeset|highlight|math|python)/.test(name))).toEqual([])
  const prose = await answered(tab, '```python\nreturn None\n```')
  await prose.locator('.token-keyword').first().waitFor()
  expect(loaded).toContain('python')
  expect(loaded).not.toContain('ruby')
  expect(loaded).not.toContain('math')
})

test('formulas are laid out by the browser, and what is no formula stays as it is', async () => {
  await using tab = await openTab(browser, host.url)
  const prose = await answered(
    tab,
    String.raw`It costs $5 and $10. Mass: $E = mc^2$, or \(a^2\).

$$
\sum_{i=1}^n
- \frac{1}{i}
$$

Wrong: $\frac{1$ stays.`,
  )
  await prose.locator('div.math mfrac').waitFor()
  await expect.poll(() => prose.locator('span.math msup').count()).toBe(2)
  expect(await prose.locator('[style], annotation, .katex').count()).toBe(0)
  expect(await prose.innerText()).toContain('It costs $5 and $10.')
  expect(await prose.locator('code', { hasText: String.raw`\frac{1` }).count()).toBe(1)
  expect(tab.complaints).toEqual([])
})

test.each([
  String.raw`$\href{javascript:window.hit++}{x}$`,
  String.raw`$\url{javascript:alert(1)}$`,
  String.raw`$\htmlStyle{position:fixed;inset:0}{x}$`,
  String.raw`$\includegraphics{https://evil.example/x.png}$`,
  String.raw`$\text{<img src=x onerror=alert(1)>}$`,
  String.raw`$\def\a{\a\a}\a$`,
  String.raw`$$\rule{100000em}{100000em}$$`,
  '```html\n<img src=x onerror=alert(1)>\n```',
  '```"><img src=x onerror=alert(1)>\nx\n```',
])('neither a formula nor a language brings in anything: %s', async (markdown) => {
  await using tab = await openTab(browser, host.url)
  const prose = await answered(tab, `${markdown}\n\n\`\`\`json\n{"after": true}\n\`\`\``)
  // The worker takes one after the other.
  await prose.locator('.token-constant, .token-keyword').last().waitFor()
  expect(await prose.locator('a, img, svg, script, [style], [onerror], [href], [id]').count()).toBe(0)
  expect(await tab.page.evaluate(() => document.documentElement.scrollWidth)).toBe(1180)
  expect(tab.complaints).toEqual([])
})

test('an answer ends with its time, tokens, cost and model, after a reload too', async () => {
  await using tab = await openTab(browser, host.url)
  fake.script({ text: ['Hello.'] })
  const ended = await tab.say('go on')
  const figures = /\d{1,2}:\d\d\s?[AP]M\s+\d+ tokens in · \d+ out · (?:under )?\$[\d.]+ · openai\/gpt-5-mini/
  expect(ended).toMatch(figures)
  await tab.page.reload()
  await expect.poll(() => tab.page.locator('.answer-foot').innerText()).toMatch(figures)
  expect(tab.complaints).toEqual([])
})

const everything = `## A heading

Some **bold** words, \`code\`, and $e^{i\\pi} + 1 = 0$.

| service | region | state | requests | errors | latency | owner | since |
|---|---|---|--:|--:|--:|---|---|
| gateway-frontend | eu-central-1 | healthy | 1204331 | 12 | 34 ms | platform-team | 2026-01-01 |

\`\`\`python
def area(radius: float) -> float:
    """Of a circle."""
    return 3.14159 * radius ** 2  # roughly
\`\`\`

$$
\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}
$$

![dot](data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==)
`
test.each([
  ['light', 1180],
  ['dark', 1180],
  ['light', 375],
  ['dark', 375],
] as const)('an answer with everything is readable in the %s theme, %i pixels wide', async (colorScheme, width) => {
  await using tab = await openTab(browser, host.url, { colorScheme, viewport: { width, height: 900 } })
  fake.script(
    {
      reasoning: ['First I look at the clock, then I explain.'],
      calls: [
        { name: 'system_time', args: {} },
        { name: 'kv_get', args: { nothing: true } },
      ],
    },
    { text: [everything] },
  )
  await tab.say('show me everything')
  const answer = tab.page.locator('.answer').last()
  // Each is laid out when it comes into view.
  for (const block of ['pre[data-language]', '.math, [data-math]'])
    await answer
      .locator(block)
      .first()
      .evaluate((element) => element.scrollIntoView())
  await answer.locator('.token-keyword').first().waitFor()
  await answer.locator('div.math').waitFor()
  await answer.locator('.reasoning summary').click()
  await answer.locator('.tool.done summary', { hasText: 'system_time' }).click()
  await answer.locator('.tool.failed summary', { hasText: 'kv_get' }).waitFor()
  await screenshot(tab, `everything-${colorScheme}-${width}`)
  expect(await accessibilityProblems(tab.page)).toEqual([])
  expect(tab.complaints).toEqual([])
})
