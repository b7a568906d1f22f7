import { fileURLToPath } from 'node:url'
import type { Browser, Locator, Page } from 'playwright-core'
import { UpstreamFailure } from 'svc/sdk'
import type { ConnectionEnd, QrStep } from 'svc/channels'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'
import type { Tab } from '../webchat/browser.ts'
import { FakePlatform } from './platform.ts'

const KEY = 'key-of-the-operator'
const PAGE = '/pages/channels/channels/channels.html'
const REFUSED = 'Failed to load resource: the server responded with a status of'

let browser: Browser
let host: TestHost
let platform: FakePlatform
/** What the platform says to the next message. */
let refusal: UpstreamFailure | undefined
beforeAll(async () => {
  platform = new FakePlatform()
  const { open } = platform.adapter()
  platform.install({
    signIn: (link) => platform.signIn(link),
    usesSignIn: ({ depth }) => depth === 7,
    async open(link) {
      const connection = await open(link)
      const disposed = Promise.withResolvers<ConnectionEnd>()
      return {
        ...connection,
        closed: Promise.race([connection.closed, disposed.promise]),
        send: (message) => (refusal ? Promise.reject(refusal) : connection.send(message)),
        async [Symbol.asyncDispose]() {
          disposed.resolve({ retry: 'later', reason: 'disposed' })
          await connection[Symbol.asyncDispose]()
        },
      }
    },
  })
  browser = await launchBrowser()
  host = await startHost({
    plugins: [...turnPlugins, 'webchat', 'system', 'channels', fileURLToPath(new URL('test-channel', import.meta.url))],
    memory: true,
    config: {
      api_key: KEY,
      plugins: { watch: false, drain_ms: 200 },
      channels: { signal: { enabled: false, agent_name: 'ada' } },
    },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

const remembered = async (page: Page): Promise<void> => {
  await page.addInitScript((key) => sessionStorage.setItem('svc.credential', JSON.stringify({ key })), KEY)
}
const openChannel = (before = remembered): Promise<Tab> =>
  openTab(browser, host.url, { path: `${PAGE}#test_chat`, before })
const button = (place: Page | Locator, name: string): Locator => place.getByRole('button', { name, exact: true })
const api = (method: string, path: string, body?: unknown) =>
  host.json(method, `/api/channels${path}`, body, { authorization: `Bearer ${KEY}` })

const setHidden = (page: Page, isHidden: boolean): Promise<void> =>
  page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { value, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }, isHidden)

it('asks for the key, lists every channel, and finds one by the keyboard', async () => {
  await using tab = await openTab(browser, host.url, { path: PAGE })
  const { page } = tab
  await page.getByLabel('API key').fill('another')
  await page.keyboard.press('Enter')
  await page.getByText('does not accept this key').waitFor()
  await page.getByLabel('API key').fill(KEY)
  await page.keyboard.press('Enter')
  await page.getByText('45 of 45').waitFor()
  const titles = await page.locator('#groups h2').allInnerTexts()
  expect(titles.map((title) => title.toLowerCase())).toEqual(['configured', 'available', 'not available yet'])
  expect(await page.getByRole('list', { name: 'Not available yet' }).getByRole('listitem').count()).toBe(43)

  await page.getByLabel('Search channels').fill('lives in the test')
  await page.getByText('1 of 45').waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Connect Test chat' }).waitFor()
  expect(tab.complaints.filter((text) => !text.startsWith(REFUSED))).toEqual([])
})

it('sets an account up: what the daemon refuses is beside its field, and a stored secret stays', async () => {
  await using tab = await openChannel()
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await button(page, 'Set up Test chat').click()
  await button(dialog, 'Save').click()
  await dialog.getByText('This field is required').waitFor()
  const token = dialog.getByLabel('Token')
  await token.fill('abc')
  await page.keyboard.press('Enter')
  await dialog.getByText('expected at least 4 characters').waitFor()
  expect(await token.getAttribute('aria-invalid')).toBe('true')
  await expect.poll(() => token.evaluate((input) => input === document.activeElement)).toBe(true)
  await token.fill('wrong-token')
  await page.keyboard.press('Enter')

  const account = page.getByRole('region', { name: 'Account' })
  await account.getByText('was refused').waitFor()
  expect(await account.innerText()).toContain('configured wrongly')
  await button(account, 'Configure').click()
  await token.fill('right-token')
  await button(dialog, 'Save').click()
  await account.getByText('connected', { exact: true }).waitFor()
  expect(await account.innerText()).toContain('open to nobody')

  await button(account, 'Configure').click()
  expect([await token.inputValue(), await token.getAttribute('placeholder')]).toEqual([
    '',
    'Stored. Leave it empty to keep it.',
  ])
  await dialog.getByText(/^More settings/).click()
  expect(await dialog.getByLabel('Base URL').inputValue()).toBe('')
  await dialog.getByLabel('Depth').fill('7')
  await dialog.getByLabel('Allowed users').fill('@ada\n@bob')
  await button(dialog, 'Save').click()
  await page.getByText('Test chat is saved, and connects.').waitFor()
  await account.getByText('connected', { exact: true }).waitFor()
  expect(platform.links.at(-1)?.config).toMatchObject({ token: 'right-token', depth: 7 })
  await expect.poll(() => button(account, 'Configure').evaluate((one) => one === document.activeElement)).toBe(true)
  expect(tab.complaints.filter((text) => !text.startsWith(REFUSED))).toEqual([])
})

it('tests it, shows what could not be sent, and sends it again', async () => {
  await using tab = await openChannel()
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await button(page, 'Test').click()
  await button(dialog, 'Test').click()
  await dialog.getByText('The credentials are accepted: @bot.').waitFor()
  refusal = new UpstreamFailure('test_chat', 'there is no such chat', { reason: 'invalid_request', retry: 'never' })
  await dialog.getByLabel('Chat').fill('room-9')
  await button(dialog, 'Test').click()
  await dialog.getByText('on its way to room-9').waitFor()
  await button(dialog, 'Close').click()
  const letters = page.getByRole('region', { name: 'Dead letters' })
  await letters.getByText('there is no such chat').waitFor()
  await button(page, 'Test').click()
  await dialog.getByLabel('Chat').fill('room-10')
  await button(dialog, 'Test').click()
  await dialog.getByText('on its way to room-10').waitFor()
  await button(dialog, 'Close').click()
  const other = letters.getByRole('listitem').filter({ hasText: 'room-10' })
  await button(other, 'Discard').click()
  await button(dialog, 'Discard').click()
  await page.getByText('The message is discarded.').waitFor()
  await other.waitFor({ state: 'detached' })
  refusal = undefined
  await button(letters, 'Retry').click()
  await page.getByText('The message is sent again.').waitFor()
  await letters.waitFor({ state: 'detached' })
  await expect.poll(() => platform.sent.map(({ to }) => to.chatId)).toEqual(['room-9'])
  expect(tab.complaints).toEqual([])
})

it('follows a lost connection and a reload of its plugin, without being asked', async () => {
  await using tab = await openChannel()
  const { page } = tab
  const account = page.getByRole('region', { name: 'Account' })
  await page.getByText('Live', { exact: true }).waitFor()
  const opened = platform.nextOpen()
  await host.app.daemon.reload('channel-test-chat')
  await opened
  await account.getByText('connected', { exact: true }).waitFor()

  // A page that nobody looks at asks nothing; it is up to date again when somebody does.
  await setHidden(page, true)
  await page.getByText('Paused', { exact: true }).waitFor()
  platform.close({ retry: 'never', reason: 'the account was closed' })
  await expect.poll(async () => (await api('GET', '/test_chat')).body.status.last_error).toContain('was closed')
  expect(await account.getByText('the account was closed').count()).toBe(0)
  await setHidden(page, false)
  await account.getByText('the account was closed').waitFor()
  await button(account, 'Reconnect').click()
  await account.getByText('connected', { exact: true }).waitFor()
  expect(tab.complaints.filter((text) => !text.startsWith(REFUSED))).toEqual([])
})

it('signs in with a code, and makes a new one when it has expired', async () => {
  const steps: PromiseWithResolvers<QrStep>[] = []
  platform.signIn = async function* () {
    yield { status: 'pending', payload: 'code' }
    const next = Promise.withResolvers<QrStep>()
    steps.push(next)
    yield await next.promise
  }
  await using tab = await openChannel(async (page) => {
    await remembered(page)
    await page.clock.install()
  })
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await button(page, 'Sign in').click()
  await dialog.getByRole('img').waitFor()
  expect(await dialog.getByRole('img').evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBeGreaterThan(0)
  steps[0]?.reject(new Error('nobody scanned it'))
  await expect.poll(async () => (await api('GET', '/test_chat/qr/status')).body.expired).toBe(true)
  await page.clock.runFor(2000)
  await button(dialog, 'New code').click()
  await dialog.getByText('Scan the code').waitFor()
  steps[1]?.resolve({ status: 'authenticated' })
  await expect.poll(async () => (await api('GET', '/test_chat/qr/status')).body.connected).toBe(true)
  await page.clock.runFor(2000)
  await page.getByText('Test chat is signed in.').waitFor()
  expect(await dialog.count()).toBe(0)
  expect(tab.complaints).toEqual([])
})

it('lets a person in by a code, disables and removes the account; and fits a phone', async () => {
  await using tab = await openTab(browser, host.url, {
    path: `${PAGE}#test_chat`,
    viewport: { width: 390, height: 760 },
    colorScheme: 'dark',
    before: remembered,
  })
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await button(page, 'Pairing code').click()
  await button(dialog, 'Make a code').click()
  expect(await dialog.locator('.code').innerText()).toMatch(/^[A-Z\d-]{6,}$/)
  await page.keyboard.press('Escape')
  await page.getByText('1 code waits to be used.').waitFor()
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)

  await button(page, 'Disable').click()
  await button(dialog, 'Disable').click()
  await button(page, 'Enable').waitFor()
  await button(page, 'Remove').click()
  await page.keyboard.press('Escape')
  await button(page, 'Remove').click()
  await button(dialog, 'Remove').click()
  await page.getByText('Test chat is removed.').waitFor()
  expect((await api('GET', '/test_chat')).body).toMatchObject({ configured: false, accounts: 0 })
  await page.getByRole('link', { name: 'All channels' }).click()
  await page.getByText('45 of 45').waitFor()
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
  expect(tab.complaints).toEqual([])
})
