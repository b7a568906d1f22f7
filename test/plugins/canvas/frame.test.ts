import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sandboxPolicy } from '../../../core/http/sandboxed-document.ts'
import { PNG } from '../../support/fake-media.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from '../webchat/browser.ts'
import { hostile } from './hostile.ts'

let browser: Browser
let host: TestHost
let counting: Server
let origin = ''
/** What reached the server that counts: connections, and what they asked for. */
let connections = 0
const asked: string[] = []
beforeAll(async () => {
  counting = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.end('x')
  })
  counting.on('connection', () => connections++)
  await new Promise<void>((resolve) => counting.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(counting.address() as AddressInfo).port}`
  const [started, built] = await Promise.all([launchBrowser(), builtPage()])
  browser = started
  host = await startHost({ config: { plugins: { webchat: { page_dir: built.folder } } } })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  counting.closeAllConnections()
  await new Promise((resolve) => counting.close(resolve))
})

it('shows a canvas with its styles, again after a reload, and hostile HTML in it reaches nobody', async () => {
  const html =
    '<style>h1{color:rgb(1,2,3)}</style><h1>Quarterly figures</h1>' +
    `<table border="1"><tr><th>Month</th><th>Sum</th></tr><tr><td>May</td><td>12</td></tr></table>` +
    '<svg width="200" height="60"><rect x="10" y="10" width="40" height="40" fill="#36c"/><rect x="60" y="25" width="40" height="25" fill="#c63"/></svg>' +
    `<img id="dot" width="20" height="20" src="data:image/png;base64,${PNG}">` +
    hostile(origin).join('\n')
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.say(`use canvas_present ${JSON.stringify({ html, title: 'Figures' })}`)
  for (const reload of [false, true]) {
    if (reload) await tab.page.reload()
    const frame = tab.page.frameLocator('iframe[title="Figures"]')
    await frame.getByRole('heading', { name: 'Quarterly figures' }).waitFor()
    const element = tab.page.locator('iframe[title="Figures"]')
    expect(await element.getAttribute('sandbox')).toBe('')
    const style = await frame.locator('h1').evaluate((heading) => getComputedStyle(heading).color)
    expect(style).toBe('rgb(1, 2, 3)')
    expect(await frame.locator('#dot').evaluate((dot: HTMLImageElement) => dot.naturalWidth)).toBe(1)
    expect(await frame.locator('script, iframe, form, link, meta[http-equiv], base, object, video').count()).toBe(0)
  }
  expect(tab.complaints).toEqual([])
  expect(asked).toEqual([])
  expect(connections).toBe(0)
})

it('the policy of the frame alone stops what a sanitiser might miss', async () => {
  // A connection that is opened ahead asks for nothing, and no policy forbids it.
  const dirty = hostile(origin).filter((each) => !each.includes('preconnect'))
  const page = createServer((request, response) => {
    const isFrame = request.url === '/frame'
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': isFrame ? sandboxPolicy : "default-src 'self'",
    })
    response.end(
      isFrame ? `<p>there</p>${dirty.join('\n')}<p id="end">end</p>` : '<iframe sandbox="" src="/frame"></iframe>',
    )
  })
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
  const before = connections
  try {
    await using tab = await openTab(browser, `http://127.0.0.1:${(page.address() as AddressInfo).port}`)
    await tab.page.waitForLoadState('load')
    await tab.page.reload({ waitUntil: 'networkidle' })
    expect(asked).toEqual([])
    expect(connections).toBe(before)
  } finally {
    page.closeAllConnections()
    await new Promise((resolve) => page.close(resolve))
  }
})
