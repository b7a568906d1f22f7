import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtInFolders } from '../../../core/host/folders.ts'
import type { TestHost } from '../../support/host.ts'
import { freePort, startOpenId } from '../../support/openid.ts'
import type { OpenId } from '../../support/openid.ts'
import { audited, operator, startSignIn } from '../sso/rig.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage, Tab } from './browser.ts'

let browser: Browser
let built: BuiltPage
let openId: OpenId
let formOpenId: OpenId
let host: TestHost
beforeAll(async () => {
  const port = await freePort()
  const back = `http://127.0.0.1:${port}/api/auth/callback`
  // Another host is another site to a browser: cookies and Origin are what they are with a provider far away.
  ;[browser, built, openId, formOpenId] = await Promise.all([
    launchBrowser(),
    builtPage(),
    startOpenId(back, { host: 'localhost' }),
    startOpenId(back, { host: 'localhost' }),
  ])
  host = await startSignIn(
    openId.issuer,
    port,
    {
      display_name: 'Example',
      providers: [
        {
          id: 'form',
          issuer_url: formOpenId.issuer,
          client_secret: 'the-secret-of-svc',
          display_name: 'Another',
          response_mode: 'form_post',
        },
      ],
    },
    { plugins: { webchat: { page_dir: built.folder } } },
    { plugins: await builtInFolders() },
  )
})
afterAll(async () => {
  await browser?.close()
  await Promise.all([host, openId, formOpenId].map((one) => one?.[Symbol.asyncDispose]()))
})

const foreign = /^foreign request: http:\/\/localhost:\d+\//
/** Of the daemon's own page: that the provider is another site is the point. */
const complaints = (tab: Tab): string[] => tab.complaints.filter((line) => !foreign.test(line) && !/401/.test(line))

test.each([
  ['Example', 'a link'],
  ['Another', 'a form'],
])(
  'somebody signs in with %s, which sends them back with %s, talks over the WebSocket, and signs out',
  async (name) => {
    await using tab = await openTab(browser, host.url)
    const { page } = tab
    await page.getByRole('button', { name: `Sign in with ${name}` }).click()
    await page.getByText('Connected', { exact: true }).waitFor()
    expect(await tab.say('echo hello')).toContain('hello')
    const left = await page.evaluate(() => ({
      url: location.href,
      cookie: document.cookie,
      stored: [Object.keys(localStorage), Object.keys(sessionStorage)],
    }))
    expect(left).toEqual({
      url: expect.stringMatching(/\/#[0-9a-f-]{36}$/),
      cookie: '',
      stored: [[], ['svc.credential']],
    })
    expect(await page.context().cookies(`${host.url}/api/auth/callback`)).toEqual([])
    // A page of the navigation, and the chat again, ask for nothing.
    await page.getByRole('link', { name: 'Manage' }).click()
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Chat' }).click()
    await page.getByText('Connected', { exact: true }).waitFor()
    expect(await page.getByText('Ada Lovelace').isVisible()).toBe(true)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: `Sign in with ${name}` }).waitFor()
    expect((await audited(host, 'auth_revoked'))[0]).toContain('signed out: ada@example.org')
    expect(complaints(tab)).toEqual([])
  },
)

test('a sign-in that was ended elsewhere closes the conversation and says so', async () => {
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  const token = page
    .waitForResponse((response) => response.url().endsWith('/api/auth/session'))
    .then(async (response) => ((await response.json()) as { token: string }).token)
  await page.getByRole('button', { name: 'Sign in with Example' }).click()
  await page.getByText('Connected', { exact: true }).waitFor()
  await host.json('POST', '/api/auth/logout', undefined, { authorization: `Bearer ${await token}` })
  await page.getByText('Your sign-in has ended. Sign in again.').waitFor()
})

test.each(['the chat', 'a page'])('a sign-in that the daemon does not end is told, signed out in %s', async (where) => {
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  const token = page
    .waitForResponse((response) => response.url().endsWith('/api/auth/session'))
    .then(async (response) => ((await response.json()) as { token: string }).token)
  await page.getByRole('button', { name: 'Sign in with Example' }).click()
  await page.getByText('Connected', { exact: true }).waitFor()
  if (where === 'a page') await page.getByRole('link', { name: 'Manage' }).click()
  await page.route('**/api/auth/logout', (route) =>
    route.fulfill({ status: 503, json: { error: { message: 'The database is away.' } } }),
  )
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText(/did not end your sign-in, which ends by itself: The database is away.*page Sign-ins/).waitFor()
  expect(await page.evaluate(() => sessionStorage.getItem('svc.credential'))).toBe(null)
  await host.json('POST', '/api/auth/logout', undefined, { authorization: `Bearer ${await token}` })
})

test('who may not sign in reads why, and the key is still an answer', async () => {
  openId.account = { sub: 'eve', email: 'eve@evil.example', email_verified: true }
  try {
    await using tab = await openTab(browser, host.url)
    const { page } = tab
    await page.getByRole('button', { name: 'Sign in with Example' }).click()
    await page.getByRole('alert').getByText('verified e-mail addresses that its owner has named').waitFor()
    expect(new URL(page.url()).hash).toBe('')
    await page.getByLabel('API key').fill('the-operators-key')
    await page.keyboard.press('Enter')
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.getByText('Opened with the key').waitFor()
    expect(complaints(tab)).toEqual([])
  } finally {
    openId.account = { sub: 'ada', email: 'ada@example.org', email_verified: true, name: 'Ada Lovelace' }
  }
})

test('an address with a made-up code, or words for the page to say, does nothing', async () => {
  for (const [path, said] of [
    ['/#sso=made-up', 'took too long'],
    ['/#sso-problem=Call%200900%20to%20continue', 'You were not signed in.'],
    ['/#sso-problem=__proto__', 'You were not signed in.'],
  ] as const) {
    await using tab = await openTab(browser, host.url, { path })
    await tab.page.getByRole('alert').getByText(said).waitFor()
    expect(new URL(tab.page.url()).hash).toBe('')
    expect(await tab.page.locator('body').innerText()).not.toContain('0900')
  }
})

test('the owner sees who is signed in, and ends it', async () => {
  await using tab = await openTab(browser, host.url)
  await tab.page.getByRole('button', { name: 'Sign in with Example' }).click()
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await using owner = await openTab(browser, host.url, {
    path: '/pages/sso/sign-ins/index.html',
    before: async (page) => {
      const key = operator.authorization.slice('Bearer '.length)
      await page.addInitScript((text) => sessionStorage.setItem('svc.credential', text), JSON.stringify({ key }))
    },
  })
  const { page } = owner
  await page.getByRole('button', { name: 'End: Ada Lovelace' }).first().click()
  await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
  await page.getByText('Nobody is signed in.').waitFor()
  await tab.page.getByRole('button', { name: 'Sign in with Example' }).waitFor()
  expect(owner.complaints).toEqual([])
})
