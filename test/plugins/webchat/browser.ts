import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { buildPage } from '../../../plugins/webchat/build.ts'
import { cachedBuild } from '../../support/cached-build.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

/** The engine without its windows: the same page, for half the processor time of `chromium --headless`. */
const executablePath = '/usr/bin/chromium-headless-shell'
const webchat = fileURLToPath(new URL('../../../plugins/webchat', import.meta.url))

/** Fails with what to install, never skips: a page nobody opened is not tested. */
export async function launchBrowser(): Promise<Browser> {
  if (!existsSync(executablePath))
    throw new Error(
      `${executablePath} is missing. To test the chat page, install Debian's package: apt-get install chromium-headless-shell`,
    )
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

export interface BuiltPage {
  readonly folder: string
}
/** The page as it is built now: once for all files of tests. */
export async function builtPage(): Promise<BuiltPage> {
  const hash = createHash('sha256')
  for (const name of (await readdir(webchat, { recursive: true })).toSorted()) {
    const file = join(webchat, name)
    if ((await stat(file)).isFile()) hash.update(`${name}\0`).update(await readFile(file))
  }
  hash.update(await readFile(join(webchat, '../../package-lock.json')))
  const key = hash.digest('hex').slice(0, 32)
  return { folder: await cachedBuild('page', key, (outDir) => buildPage({ outDir })) }
}

/**
 * A tab, and everything it should not have done: console errors (policy violations are among them), exceptions, foreign
 * requests.
 */
export interface Tab extends AsyncDisposable {
  readonly page: Page
  readonly complaints: readonly string[]
  /** Sends with Enter and waits for the end of the answer, which it returns. */
  say(text: string): Promise<string>
}
export async function openTab(
  browser: Browser,
  url: string,
  options: BrowserContextOptions & { readonly path?: string; readonly before?: (page: Page) => Promise<void> } = {},
): Promise<Tab> {
  const { path = '/', before, ...contextOptions } = options
  const context = await browser.newContext({ viewport: { width: 1180, height: 800 }, ...contextOptions })
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      complaints.push(message.text().includes('404') ? `${message.text()} ${message.location().url}` : message.text())
  })
  page.on('pageerror', (error) => {
    complaints.push(`exception: ${error.message}`)
  })
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== url)
      complaints.push(`foreign request: ${request.url()}`)
  })
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await before?.(page)
  await page.goto(url + path)
  return {
    page,
    complaints,
    async say(text) {
      const answers = page.locator('.answer')
      const box = page.getByRole('textbox', { name: /^Message to/ })
      await box.waitFor()
      // Answers of earlier are there from then on.
      await page.getByText('Loading the conversation').waitFor({ state: 'hidden' })
      const before = await answers.count()
      await box.fill(text)
      await page.keyboard.press('Enter')
      const answer = answers.nth(before)
      await answer.locator('.answer-foot, .problem').first().waitFor()
      return await answer.innerText()
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
}
