import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { deliverUntilTaken, platforms } from '../../support/platforms/all.ts'
import type { FakePlatform } from '../../support/platforms/platform.ts'
import { FakeWeChat } from '../../support/platforms/wechat.ts'
import { FakeWeComApp } from '../../support/platforms/wecom-app.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'
import type { Tab } from '../webchat/browser.ts'

// Channels of several kinds are set up by a person who has the page and nothing else, against their fakes.

const KEY = 'key-of-the-operator'
const PAGE = '/pages/channels/channels/channels.html'
/** Channels, with the fields that somebody needs beside addresses that have a default: they are in sight at once. */
const needed: Readonly<Record<string, readonly string[]>> = {
  telegram: ['token'],
  discord: ['token'],
  slack: ['token', 'app_token'],
  mattermost: ['token', 'base_url'],
  matrix: ['token', 'base_url'],
  zulip: ['token', 'bot_email', 'base_url'],
  ntfy: ['topic', 'token'],
  twitch: ['token', 'client_id', 'client_secret', 'refresh_token'],
  line: ['token', 'channel_secret'],
  viber: ['token', 'webhook_url', 'sender_name'],
  whatsapp: ['token', 'phone_number_id', 'verify_token', 'app_secret'],
  wecom: ['mode', 'token', 'corp_id', 'agent_id', 'callback_token', 'encoding_aes_key'],
}
const names = Object.keys(needed)
const start = (name: string): Promise<FakePlatform> =>
  name === 'wecom' ? FakeWeComApp.start() : (platforms[name]?.() ?? Promise.reject(new Error(`no platform ${name}`)))

let browser: Browser
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    plugins: [
      ...turnPlugins,
      'webchat',
      'system',
      'channels',
      ...[...names, 'wechat'].map((name) => `channels/${name}`),
    ],
    memory: true,
    config: { api_key: KEY, outbound: { allow: ['127.0.0.1'] }, plugins: { watch: false, drain_ms: 200 } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

/** Fills in the field of a form as its kind asks for. */
async function fill(page: Page, key: string, value: unknown): Promise<void> {
  const field = page.locator(`#field-${key}`)
  if (!(await field.isVisible())) await page.getByText(/^More settings/).click()
  const text = Array.isArray(value) ? value.join('\n') : String(value)
  if ((await field.evaluate(({ tagName }) => tagName)) === 'SELECT') await field.selectOption(text)
  else await field.fill(text)
}

const openPage = (name: string, index: number): Promise<Tab> =>
  openTab(browser, host.url, {
    path: `${PAGE}#${name}`,
    // Half of them in the dark, and some on a phone.
    colorScheme: index % 2 === 1 ? 'dark' : 'light',
    viewport: index % 3 === 2 ? { width: 390, height: 760 } : { width: 1180, height: 800 },
    before: async (page) => {
      await page.addInitScript((key) => sessionStorage.setItem('svc.credential', JSON.stringify({ key })), KEY)
    },
  })
const button = (place: Page | Locator, name: string | RegExp): Locator => place.getByRole('button', { name })
const received = async (name: string): Promise<number> =>
  (await host.json('GET', `/api/channels/${name}`, undefined, { authorization: `Bearer ${KEY}` })).body.status
    .messages_received

it.each(names.map((name, index) => [name, index] as const))('sets up %s with the page', async (name, index) => {
  await using platform = await start(name)
  platform.setWebhook((request) => deliverUntilTaken(() => host.url, name, request))
  await using tab = await openPage(name, index)
  const { page } = tab
  await button(page, /^Set up /).click()
  const dialog = page.getByRole('dialog')
  await button(dialog, 'Save').waitFor()
  for (const key of needed[name] ?? []) expect(await page.locator(`#field-${key}`).isVisible(), key).toBe(true)
  for (const [key, value] of Object.entries(platform.config)) await fill(page, key, value)
  await fill(page, 'allowed_users', [platform.person])
  await button(dialog, 'Save').click()
  const account = page.getByRole('region', { name: 'Account' })
  await account.getByText('connected', { exact: true }).waitFor()
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  await platform.waitForListener?.()
  await platform.deliver({ text: '/help' })
  await expect.poll(() => received(name)).toBe(1)
  expect(tab.complaints).toEqual([])
})

it('sets up wechat with the page, and signs in with its code', async () => {
  await using platform = await FakeWeChat.start()
  platform.codeStates.push({ status: 'wait' }, { status: 'scaned' }, platform.confirmed)
  await using tab = await openPage('wechat', 1)
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await button(page, /^Set up /).click()
  const { base_url: base, cdn_url: cdn } = platform.config
  for (const [key, value] of Object.entries({ base_url: base, cdn_url: cdn })) await fill(page, key, value)
  await fill(page, 'allowed_users', [platform.person])
  await button(dialog, 'Save').click()
  const account = page.getByRole('region', { name: 'Account' })
  await account.getByText('needs a sign-in').waitFor()
  await button(account, 'Sign in').click()
  await dialog.getByRole('img').waitFor()
  await page.getByText('WeChat is signed in.').waitFor()
  await account.getByText('connected', { exact: true }).waitFor()
  await platform.deliver({ text: '/help' })
  await expect.poll(() => received('wechat')).toBe(1)
  expect(tab.complaints).toEqual([])
})

it('says what is wrong with a token, and takes the right one', async () => {
  await using platform = await start('mattermost')
  await using tab = await openPage('mattermost', 2)
  const { page } = tab
  const dialog = page.getByRole('dialog')
  const account = page.getByRole('region', { name: 'Account support' })
  await button(page, 'Add another account').click()
  await fill(page, 'account_id', 'support')
  for (const [key, value] of Object.entries(platform.wrongConfig ?? {})) await fill(page, key, value)
  await button(dialog, 'Save').click()
  await account.getByText('configured wrongly').waitFor()
  await account.getByText('What to do: ').waitFor()
  await button(account, 'Configure').click()
  await fill(page, 'token', platform.config['token'])
  await button(dialog, 'Save').click()
  await account.getByText('connected', { exact: true }).waitFor()
})
