/**
 * Runs in the sandbox beside Chromium, so that what a hostile page does to its processes, or to this one, does not reach the daemon,
 * which reads lines of JSON from here. The sandbox shows it this file and `../driver`: it imports nothing else of svc.
 */
import { mkdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import type * as Playwright from 'playwright-core'
import { readContent } from '../driver/content.ts'
import { Downloads } from '../driver/downloads.ts'
import { messageOf, short, TooLong, within } from '../driver/text.ts'
import { loaded, settled, Windows } from '../driver/windows.ts'
import type { DriverAnswer, DriverArgs, DriverRequest, DriverStart, Op, PageContent } from '../wire.ts'

/** In memory, private to the sandbox, and gone with it. */
const DOWNLOADS = '/tmp/downloads'
/** Links, fields and buttons of a page, each. */
const MAX_ITEMS = 100

const args = [
  // Nothing but the proxy: no UDP, no lookups of names, no guesses where the page leads next.
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--disable-quic',
  '--dns-prefetch-disable',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  // A page that asks for more crashes, and the machine does not.
  '--renderer-process-limit=4',
  '--js-flags=--max-old-space-size=1024',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-extensions',
  '--disable-features=WebUSB,WebBluetooth,WebSerial,WebHID,DirectSockets,IdleDetection',
]

type Timed = <T>(work: Promise<T>) => Promise<T>

/** Steps that may open a window. */
const OPENING: ReadonlySet<Op> = new Set(['click', 'type', 'run'])

interface Stage {
  readonly hangMs: number
  readonly windows: Windows
  readonly downloads: Downloads
}
interface Answer {
  readonly value?: string
  readonly content?: PageContent
}
type Run = (stage: Stage, args: DriverArgs, ms: number, timed: Timed) => Promise<Answer>

async function navigate({ windows }: Stage, { url = '' }: DriverArgs, ms: number): Promise<Answer> {
  const page = await windows.open()
  const download = page.waitForEvent('download', { timeout: ms }).catch(() => undefined /* it is a page */)
  try {
    const response = await page.goto(url, { waitUntil: 'domcontentloaded', timeout: ms })
    await loaded(page, 'load', ms)
    return { value: String(response?.status() ?? '') }
  } catch (error) {
    // The address is that of a file.
    if (!messageOf(error).includes('Download is starting')) throw error
    await download
    return { value: '' }
  }
}

async function type({ windows }: Stage, { selector = '', text = '' }: DriverArgs, ms: number): Promise<Answer> {
  const page = windows.require()
  const field = page.locator(selector)
  await settled(page, ms, async () => {
    const tag = await field.evaluate((element) => element.localName, undefined, { timeout: ms })
    await (tag === 'select' ? field.selectOption(text, { timeout: ms }) : field.fill(text, { timeout: ms }))
  })
  return {}
}

async function back({ windows }: Stage, _: DriverArgs, ms: number): Promise<Answer> {
  const page = windows.require()
  const before = page.url()
  const response = await page.goBack({ waitUntil: 'domcontentloaded', timeout: ms })
  if (response === null && page.url() === before && windows.size > 1) await page.close()
  else if (response === null && page.url() === before) throw new Error('there is no page before this one')
  return {}
}

const ways = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] } as const
const runs: Readonly<Record<Op, Run>> = {
  navigate,
  type,
  back,
  async click({ windows }, { selector = '' }, ms) {
    const page = windows.require()
    await settled(page, ms, () => page.locator(selector).click({ timeout: ms }))
    return {}
  },
  async screenshot({ windows }, _, ms) {
    const bytes = await windows.require().screenshot({ type: 'jpeg', quality: 80, timeout: ms })
    return { value: bytes.toString('base64') }
  },
  async read({ windows }, { maxChars = 0 }, _, timed) {
    return { content: await timed(windows.require().evaluate(readContent, [maxChars, MAX_ITEMS] as const)) }
  },
  async scroll({ windows }, { direction = 'down', amount = 0 }, _, timed) {
    const [x, y] = ways[direction]
    const at = await timed(
      windows.require().evaluate(
        ([left, top]) => {
          window.scrollBy({ left, top, behavior: 'instant' })
          const { scrollHeight } = document.documentElement
          return `${Math.round(window.scrollY)} of ${Math.max(0, scrollHeight - window.innerHeight)}`
        },
        [x * amount, y * amount] as const,
      ),
    )
    return { value: short(String(at)) }
  },
  async wait({ windows }, { selector = '' }, ms) {
    await windows.require().locator(selector).first().waitFor({ state: 'visible', timeout: ms })
    return {}
  },
  async run({ windows }, { expression = '', maxChars = 0 }, ms, timed) {
    const page = windows.require()
    let value: unknown
    await settled(page, ms, async () => {
      value = await timed(page.evaluate(expression).catch(ofPageLeft))
    })
    return { value: short(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined'), maxChars) }
  },
  async file({ downloads }, { file = -1, offset = 0 }) {
    return { value: await downloads.read(file, offset) }
  },
  async state({ windows }, { maxChars = 0 }, ms, timed) {
    const page = windows.require()
    const content = await timed(page.evaluate(readContent, [maxChars, 0] as const))
    const bytes = await page.screenshot({ type: 'jpeg', quality: 60, timeout: ms })
    return { value: bytes.toString('base64'), content }
  },
}

/** A script that opens another page has done what it is for. */
function ofPageLeft(error: unknown): string {
  if (messageOf(error).includes('Execution context was destroyed')) return 'the page was left'
  throw error
}

/** Whether the scripts of the page still run. */
async function isAlive(page: Playwright.Page | undefined, ms: number): Promise<boolean> {
  if (!page) return true
  try {
    await within(page.evaluate('1'), ms)
    return true
  } catch (error) {
    // A page that has just gone is no page that hangs.
    return !(error instanceof TooLong)
  }
}

const isAllowed = (url: string): boolean => /^(?:https?:|blob:|about:|chrome-error:|$)/.test(url)

async function answerTo(stage: Stage, { id, op, args: given, timeoutMs }: DriverRequest): Promise<DriverAnswer> {
  const { windows, downloads, hangMs } = stage
  const until = performance.now() + timeoutMs
  let result: Answer | undefined
  let error: string | undefined
  if (op === 'navigate') windows.refuse()
  if (OPENING.has(op)) windows.accept()
  try {
    result = await runs[op](stage, given, timeoutMs, (work) => within(work, timeoutMs))
  } catch (thrown) {
    error = messageOf(thrown)
  }
  if (OPENING.has(op)) windows.accept()
  if (op === 'file') return { id, ...(result && { result }), ...(error !== undefined && { error }) }
  // Whoever looks on takes nothing from the agent.
  const looksOn = op === 'state'
  if (!looksOn) await downloads.settle(Math.max(0, until - performance.now()))
  if (!(await isAlive(windows.current, hangMs))) return { id, fatal: true }
  const page = windows.current
  if (page && !isAllowed(page.url())) {
    error = `the page led to ${short(page.url(), 100)}, which is not shown`
    result = undefined
    await page.goto('about:blank').catch(() => undefined /* it is gone */)
  }
  const place = {
    url: short(page?.url() ?? '', 2000),
    title: page ? short(await within(page.title(), hangMs).catch(() => '')) : '',
    notes: looksOn ? [] : windows.takeNotes(),
    downloads: looksOn ? [] : downloads.report(),
  }
  return { id, place, ...(result && { result }), ...(error !== undefined && { error }) }
}

const say = (answer: DriverAnswer): void => void process.stdout.write(`${JSON.stringify(answer)}\n`)

async function launch(
  chromium: Playwright.BrowserType,
  { executable, proxy }: DriverStart,
): Promise<Playwright.Browser> {
  const options = {
    executablePath: executable,
    headless: true,
    proxy: { server: proxy, bypass: '<-loopback>' },
    downloadsPath: DOWNLOADS,
    args,
  }
  try {
    return await chromium.launch({ ...options, chromiumSandbox: true })
  } catch (error) {
    // Where the kernel permits no namespace in a namespace, this sandbox is the only one.
    if (!(error instanceof Error && error.message.includes('No usable sandbox'))) throw error
    return await chromium.launch({ ...options, chromiumSandbox: false })
  }
}

async function main(): Promise<void> {
  mkdirSync(DOWNLOADS, { recursive: true })
  const start = JSON.parse(process.argv[2] ?? '') as DriverStart
  const { default: playwright } = (await import(pathToFileURL(start.module).href)) as {
    readonly default: typeof Playwright
  }
  const browser = await launch(playwright.chromium, start)
  browser.on('disconnected', () => process.exit(3))
  const context = await browser.newContext({
    viewport: { width: start.width, height: start.height },
    acceptDownloads: true,
    serviceWorkers: 'block',
  })
  const downloads = new Downloads(DOWNLOADS, start.downloadBytes)
  const stage = { hangMs: start.hangMs, windows: new Windows(context, downloads), downloads }
  say({ ready: browser.version() })
  for await (const line of createInterface({ input: process.stdin }))
    say(await answerTo(stage, JSON.parse(line) as DriverRequest))
  process.exit(0)
}

await main()
