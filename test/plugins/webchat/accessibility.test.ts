import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems, prepareForProblems } from './accessibility.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'

let browser: Browser
let host: TestHost
let urls: readonly string[]
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    memory: true,
    config: { plugins: { watch: false, webchat: { page_dir: (await builtPage()).folder } } },
  })
  const { pages } = (await host.json('GET', '/api/pages')).body
  urls = ['/', ...pages.map(({ url }: { url: string }) => url)]
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

describe('every page, as a new home shows it, keeps WCAG 2.2 AA', () => {
  it.each([
    ['light', 1280],
    ['dark', 320],
  ] as const)('in the %s theme, %i pixels wide', async (colorScheme, width) => {
    const problems: Record<string, readonly string[]> = {}
    await using tab = await openTab(browser, host.url, {
      colorScheme,
      viewport: { width, height: 800 },
      before: prepareForProblems,
    })
    for (const path of urls) {
      await tab.page.goto(host.url + path)
      await tab.page.locator('.has-nav, #message-box').first().waitFor()
      const found = await accessibilityProblems(tab.page)
      if (found.length > 0) problems[path] = found
    }
    expect(problems).toEqual({})
  })
})
