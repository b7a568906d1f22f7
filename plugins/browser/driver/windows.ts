import type * as Playwright from 'playwright-core'
import type { Downloads } from './downloads.ts'
import { pause, short } from './text.ts'

/** Further windows of a page are closed at once. */
const MAX_PAGES = 5
const MAX_NOTES = 20
/** How long after a click a window may open: as long as browsers take it for an act of the user. */
const ACTIVATION_MS = 5000
/** How long a script may take to begin a navigation after a click. */
const SETTLE_MS = 150
const LOAD_MS = 5000

/** The windows of the agent, the last of which it works in. */
export class Windows {
  readonly #context: Playwright.BrowserContext
  readonly #downloads: Downloads
  readonly #pages: Playwright.Page[] = []
  #notes: string[] = []
  #acceptsUntil = 0

  constructor(context: Playwright.BrowserContext, downloads: Downloads) {
    this.#context = context
    this.#downloads = downloads
    context.on('page', (page) => this.#adopt(page))
  }

  get current(): Playwright.Page | undefined {
    return this.#pages.at(-1)
  }
  get size(): number {
    return this.#pages.length
  }
  async open(): Promise<Playwright.Page> {
    return this.current ?? (await this.#context.newPage())
  }
  require(): Playwright.Page {
    if (this.current) return this.current
    throw new Error('no page is open: open one with browser_navigate')
  }
  /** From now on, and for a while, a new window is what the agent asked for: by a click, not by opening a page. */
  accept(): void {
    this.#acceptsUntil = performance.now() + ACTIVATION_MS
  }
  refuse(): void {
    this.#acceptsUntil = 0
  }
  note(text: string): void {
    if (this.#notes.length < MAX_NOTES) this.#notes.push(short(text))
  }
  takeNotes(): string[] {
    const notes = this.#notes
    this.#notes = []
    return notes
  }

  #adopt(page: Playwright.Page): void {
    if (this.#pages.length > 0 && performance.now() > this.#acceptsUntil) {
      this.note('the page opened a new window by itself, which was closed')
      return void page.close().catch(() => undefined /* it closed itself */)
    }
    if (this.#pages.length >= MAX_PAGES) {
      this.note(`a further window was closed: ${MAX_PAGES} are open`)
      return void page.close().catch(() => undefined /* it closed itself */)
    }
    if (this.#pages.length > 0)
      this.note('the page opened a new window, which is the current one; browser_back closes it')
    this.#pages.push(page)
    page.on('close', () => this.#remove(page))
    page.on('crash', () => {
      this.note('the page crashed and was closed')
      this.#remove(page)
      void page.close().catch(() => undefined /* there is nothing left to close */)
    })
    page.on('dialog', (dialog) => {
      this.note(`the page showed a dialog (${dialog.type()}), which was answered with no: ${dialog.message()}`)
      // To leave a page is what the agent asked for.
      const answer = dialog.type() === 'beforeunload' ? dialog.accept() : dialog.dismiss()
      answer.catch(() => undefined /* the page has gone */)
    })
    page.on('download', (download) => this.#downloads.add(download))
  }
  #remove(page: Playwright.Page): void {
    const at = this.#pages.indexOf(page)
    if (at >= 0) this.#pages.splice(at, 1)
  }
}

/** Does `act`, and waits for the page that it leads to, in this window or a new one. */
export async function settled(page: Playwright.Page, ms: number, act: () => Promise<unknown>): Promise<void> {
  let navigation: Playwright.Request | undefined
  const ended = Promise.withResolvers<void>()
  const onRequest = (request: Playwright.Request): void => {
    if (leadsOn(request, page)) navigation = request
  }
  const onEnd = (): void => ended.resolve()
  const onFailed = (request: Playwright.Request): void => {
    if (request === navigation) onEnd()
  }
  const onNavigated = (frame: Playwright.Frame): void => {
    if (frame === page.mainFrame()) onEnd()
  }
  const context = page.context()
  context.on('request', onRequest).on('requestfailed', onFailed).on('page', onEnd)
  page.on('framenavigated', onNavigated).on('download', onEnd).on('close', onEnd)
  try {
    await act()
    await pause(SETTLE_MS)
    if (navigation) await Promise.race([ended.promise, pause(ms)])
  } finally {
    context.off('request', onRequest).off('requestfailed', onFailed).off('page', onEnd)
    page.off('framenavigated', onNavigated).off('download', onEnd).off('close', onEnd)
  }
  await loaded(context.pages().at(-1) ?? page, 'domcontentloaded', ms)
}
/** Whether a request is for the page of a window, and not for a frame in one. */
function leadsOn(request: Playwright.Request, page: Playwright.Page): boolean {
  if (!request.isNavigationRequest()) return false
  try {
    const frame = request.frame()
    return frame === page.mainFrame() || frame.page() !== page
  } catch {
    // A window that is being opened has no frame yet.
    return true
  }
}
export async function loaded(page: Playwright.Page, state: 'load' | 'domcontentloaded', ms: number): Promise<void> {
  // A page that never stops loading can be worked with all the same.
  await page.waitForLoadState(state, { timeout: Math.min(ms, LOAD_MS) }).catch(() => undefined)
}
