import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage, Tab } from './browser.ts'

const KEY = 'page-key-0123456789'
const asOwner = { authorization: `Bearer ${KEY}` }
const GOALS = '/pages/goals/goals/goals.html'
let browser: Browser
let built: BuiltPage
let host: TestHost
/** Where pairing is off, as it is without a word about it. */
let off: TestHost
beforeAll(async () => {
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
  const plugins = { watch: false, webchat: { page_dir: built.folder } }
  ;[host, off] = await Promise.all([
    startHost({ memory: true, config: { api_key: KEY, pairing: { enabled: true }, plugins } }),
    startHost({ memory: true, config: { api_key: KEY, plugins } }),
  ])
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([host, off].map((one) => one?.[Symbol.asyncDispose]()))
})

const stored = (page: Page): Promise<{ tab: unknown; device: unknown }> =>
  page.evaluate(() => ({
    tab: JSON.parse(sessionStorage.getItem('svc.credential') ?? 'null') as unknown,
    device: JSON.parse(localStorage.getItem('svc.remembered') ?? 'null') as unknown,
  }))
const isNothing = { tab: null, device: null }
const devices = async (): Promise<{ device_id: string; display_name: string }[]> =>
  (await host.json('GET', '/api/pairing/devices', undefined, asOwner)).body.devices
const complaints = ({ complaints: all }: Tab): string[] => all.filter((text) => !/status of 40[13]/.test(text))

async function enterKey(page: Page, key: string, isRemembered = false): Promise<void> {
  await page.getByLabel('API key').fill(key)
  if (isRemembered) await page.getByLabel(/^Remember this browser/).check()
  await page.keyboard.press('Enter')
}
const connected = (page: Page): Promise<void> => page.getByText('Connected', { exact: true }).waitFor()
const goals = (page: Page): Promise<void> => page.locator('#live').waitFor()

describe('the key', () => {
  it('is asked for once in a tab, and is nowhere but in its storage', async () => {
    await using tab = await openTab(browser, host.url)
    const { page } = tab
    await enterKey(page, KEY)
    await connected(page)
    const elsewhere = await page.evaluate(async () =>
      JSON.stringify([
        { ...localStorage },
        document.cookie,
        history.state,
        location.href,
        document.documentElement.outerHTML,
        await indexedDB.databases(),
        await caches.keys(),
      ]),
    )
    expect(elsewhere).not.toContain(KEY)
    expect(await stored(page)).toEqual({ tab: { key: KEY }, device: null })
    await page.reload()
    await connected(page)
    await page.goto(host.url + GOALS)
    await goals(page)
    await page.getByRole('link', { name: 'Approvals' }).click()
    await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor()
    expect(await page.getByLabel('API key').count()).toBe(0)
    expect(complaints(tab)).toEqual([])
  })

  it('that was entered on a page opens the chat', async () => {
    await using tab = await openTab(browser, host.url, { path: GOALS })
    await enterKey(tab.page, KEY)
    await goals(tab.page)
    await tab.page.goto(host.url)
    await connected(tab.page)
  })

  it('is not given to another tab', async () => {
    await using tab = await openTab(browser, host.url)
    await enterKey(tab.page, KEY)
    await connected(tab.page)
    const other = await tab.page.context().newPage()
    await other.goto(host.url)
    await other.getByLabel('API key').waitFor()
  })

  it.each(['/', GOALS])('that is refused is stored nowhere, at %s', async (path) => {
    await using tab = await openTab(browser, host.url, {
      path,
      before: async (page) => {
        await page.goto(`${host.url}/favicon.svg`)
        await page.evaluate(() => sessionStorage.setItem('svc.credential', JSON.stringify({ key: 'an-older-key' })))
      },
    })
    const { page } = tab
    await page.getByLabel('API key').waitFor()
    expect(await stored(page)).toEqual(isNothing)
    await enterKey(page, 'wrong')
    await page.getByText(/refused|does not accept this key/).waitFor()
    expect(await stored(page)).toEqual(isNothing)
  })

  it('that version 0.1 stored on the device is removed, and not used', async () => {
    await using tab = await openTab(browser, host.url, {
      before: async (page) => {
        await page.addInitScript((key) => localStorage.setItem('svc.remembered', JSON.stringify({ key })), KEY)
      },
    })
    await tab.page.getByLabel('API key').waitFor()
    expect(await stored(tab.page)).toEqual(isNothing)
  })

  it.each([
    ['the chat', '/', connected],
    ['a page', GOALS, goals],
  ])('is gone when somebody signs out in %s', async (_where, path, opened) => {
    await using tab = await openTab(browser, host.url, { path })
    const { page } = tab
    await enterKey(page, KEY)
    await opened(page)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Open the chat' }).waitFor()
    expect(await stored(page)).toEqual(isNothing)
    await page.goto(host.url + GOALS)
    await page.getByLabel('API key').waitFor()
  })
})

describe('a browser that is remembered', () => {
  beforeEach(async () => {
    for (const { device_id: id } of await devices())
      await host.json('DELETE', `/api/pairing/devices/${id}`, undefined, asOwner)
  })

  it.each([
    ['the chat', '/', connected],
    ['a page', GOALS, goals],
  ])('in %s is a paired device, whose key opens the next tab', async (_where, path, opened) => {
    await using tab = await openTab(browser, host.url, { path })
    const { page } = tab
    await enterKey(page, KEY, true)
    await opened(page)
    await expect.poll(() => stored(page)).toMatchObject({ device: { device: expect.any(String) } })
    const { device } = await stored(page)
    const [paired] = await devices()
    expect(paired).toMatchObject({ display_name: 'Browser, Linux', platform: 'Linux' })
    expect(device).toEqual({ key: expect.stringMatching(/^svc_device_/), device: paired?.device_id })
    const next = await page.context().newPage()
    await next.goto(host.url)
    await next.getByText('A paired device').waitFor()
    await next.goto(host.url + GOALS)
    await goals(next)
    expect((await stored(next)).tab).toBeNull()
  })

  it('is asked for the key once in a tab, for what a device must not do', async () => {
    await using tab = await remembered()
    const { page } = tab
    await page.getByRole('button', { name: 'Pair a device' }).click()
    const dialog = page.getByRole('dialog', { name: 'This needs the API key' })
    await dialog.getByText('cannot do this: use the API key').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('alert').getByText('cannot do this').waitFor()
    await page.getByRole('button', { name: 'Pair a device' }).click()
    await dialog.getByLabel('API key').fill('wrong')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').getByText('does not accept this key').waitFor()
    await dialog.getByLabel('API key').fill(KEY)
    await page.keyboard.press('Enter')
    const code = page.getByRole('dialog', { name: 'Pair a device' })
    await code.locator('.code').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Pair a device' }).click()
    await code.locator('.code').waitFor()
    expect(await stored(page)).toMatchObject({ tab: { key: KEY }, device: { device: expect.any(String) } })
    expect(complaints(tab)).toEqual([])
  })

  it('is asked for the key in the chat too', async () => {
    await using tab = await remembered('/')
    const { page } = tab
    await page.getByRole('button', { name: 'New agent' }).click()
    await page.getByLabel('Name').fill('by-the-owner')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'This needs the API key' })
    await dialog.getByLabel('API key').fill('wrong')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').getByText('does not accept this key').waitFor()
    await dialog.getByLabel('API key').fill(KEY)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'by-the-owner', level: 1 }).waitFor()
    await page.getByText('Opened with the key').waitFor()
    expect(complaints(tab)).toEqual([])
  })

  it.each([
    ['the chat', '/'],
    ['a page', GOALS],
  ])('is no device any more when somebody signs out in %s', async (_where, path) => {
    await using tab = await remembered(path)
    const { page } = tab
    expect(await devices()).toHaveLength(1)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Open the chat' }).waitFor()
    expect(await stored(page)).toEqual(isNothing)
    expect(await devices()).toEqual([])
  })

  it.each([
    ['the chat', '/'],
    ['a page', GOALS],
  ])('says what to do when the daemon does not remove the device, signed out in %s', async (_where, path) => {
    await using tab = await remembered(path)
    const { page } = tab
    await page.route('**/api/pairing/devices/*', (route) =>
      route.fulfill({ status: 503, json: { error: { message: 'The database is away.' } } }),
    )
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page
      .getByText(/still a paired device: The database is away.*on the page Devices, by its id [\da-f-]{36}/)
      .waitFor()
    expect(await stored(page)).toEqual(isNothing)
  })

  it('whose device was removed asks for the key and keeps nothing', async () => {
    await using tab = await remembered('/')
    const [device] = await devices()
    await host.json('DELETE', `/api/pairing/devices/${device?.device_id}`, undefined, asOwner)
    await tab.page.getByText('This browser is not a paired device any more').waitFor()
    expect(await stored(tab.page)).toEqual(isNothing)
  })

  it.each(['/', GOALS])('cannot be had while pairing is off, which %s says', async (path) => {
    await using tab = await openTab(browser, off.url, { path })
    await tab.page.getByText('This browser cannot be remembered while pairing is off').waitFor()
    expect(await tab.page.getByRole('checkbox').count()).toBe(0)
  })

  /** A tab that has only the key of the device. */
  async function remembered(path = '/pages/pairing/devices/devices.html'): Promise<Tab> {
    const { body } = await host.json('POST', '/api/pairing/request', undefined, asOwner)
    const { body: paired } = await host.json('POST', '/api/pairing/complete', { pairing_code: body.pairing_code })
    const device = { key: paired.api_key, device: paired.device_id }
    const tab = await openTab(browser, host.url, {
      path,
      before: async (page) => {
        await page.goto(`${host.url}/favicon.svg`)
        await page.evaluate((value) => localStorage.setItem('svc.remembered', value), JSON.stringify(device))
      },
    })
    await tab.page.getByRole('button', { name: 'Sign out' }).waitFor()
    return tab
  }
})
