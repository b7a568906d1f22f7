import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems } from './accessibility.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage, Tab } from './browser.ts'

const launcher = fileURLToPath(new URL('../../fixtures/plugins/launcher', import.meta.url))
let browser: Browser
let built: BuiltPage
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-page-approvals-'))
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
})
afterAll(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})
const daemon = (): Promise<TestHost> =>
  startHost({
    config: {
      plugins: {
        paths: [launcher],
        launcher: { file: join(folder, 'launches.log') },
        webchat: { page_dir: built.folder },
      },
    },
  })
/** A tab in which an agent was just told to do what it has to ask for. */
async function asking(host: TestHost, label: string, options: BrowserContextOptions = {}): Promise<Tab> {
  const { body } = await host.json('POST', '/api/agents', {
    manifest_toml: 'name = "digger"\n[capabilities]\ntools = ["*"]\n',
  })
  const tab = await openTab(browser, host.url, { ...options, path: `/#${body.agent_id}` })
  await tab.page.getByRole('heading', { name: 'Say something to digger' }).waitFor()
  await tab.page.getByRole('textbox', { name: /^Message to/ }).fill(`use launch ${JSON.stringify({ label })}`)
  await tab.page.keyboard.press('Enter')
  return tab
}
const screenshot = async ({ page }: Tab, name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}

test('an agent that asks is shown with exactly what it will do, and goes on when it is approved', async () => {
  await using host = await daemon()
  await using tab = await asking(host, 'one')
  const { page } = tab
  const card = page.getByRole('region', { name: 'Waiting for your approval' }).getByRole('article')
  await card.getByRole('heading', { name: 'digger wants to use launch' }).waitFor()
  expect(await card.getByLabel('Exactly what will be done').innerText()).toBe('label: one')
  await card.getByText('high risk').waitFor()
  expect(await card.innerText()).toMatch(/Counts as rejected in \d+ min/)
  await expect.poll(() => page.title()).toBe('(1) An approval waits · digger · svc')
  await page
    .getByRole('alert')
    .filter({ hasText: 'digger needs your approval, risk high: launch {"label":"one"}' })
    .waitFor()
  await page.getByRole('navigation', { name: 'Agents' }).getByText('asks you').waitFor()
  await page.locator('.tool-state', { hasText: 'waits for you' }).waitFor()
  await screenshot(tab, 'approval')
  await card.getByRole('button', { name: 'Approve once' }).click()
  await page.locator('.answer', { hasText: 'launched one' }).waitFor()
  await card.waitFor({ state: 'detached' })
  expect((await host.json('GET', '/api/approvals')).body.approvals[0].status).toBe('approved')
  expect(tab.complaints).toEqual([])
})

test('it is rejected with the keyboard alone, and the focus goes back to the message box', async () => {
  await using host = await daemon()
  await using tab = await asking(host, 'two')
  const { page } = tab
  const reject = page.getByRole('button', { name: 'Reject' })
  await reject.waitFor()
  await expect.poll(() => reject.isEnabled()).toBe(true)
  for (
    let presses = 0;
    presses < 20 && !(await reject.evaluate((button) => button === document.activeElement));
    presses++
  )
    await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Enter')
  const reason = page.getByLabel('Reason, which the agent reads')
  await expect.poll(() => reason.evaluate((field) => field === document.activeElement)).toBe(true)
  await page.keyboard.press('Enter')
  await page.locator('.answer', { hasText: 'a person rejected it' }).waitFor()
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('message-box')
  expect(tab.complaints).toEqual([])
})

test('what was answered elsewhere disappears, and what would be hidden is shown', async () => {
  await using host = await daemon()
  await using tab = await asking(host, 'a\u202eb\u200bc\u{e0101}\u1160')
  const { page } = tab
  const card = page.getByRole('article', { name: /wants to use launch/ })
  expect(await card.getByLabel('Exactly what will be done').innerText()).toBe(
    String.raw`label: a\u{202e}b\u{200b}c\u{e0101}\u{1160}`,
  )
  const [request] = (await host.json('GET', '/api/approvals')).body.approvals
  await host.json('POST', `/api/approvals/${request.id}/reject`)
  await card.waitFor({ state: 'detached' })
  expect(tab.complaints).toEqual([])
})

test('a request too large for a list is read whole before it can be approved', async () => {
  await using host = await daemon()
  const { body: agents } = await host.json('GET', '/api/agents')
  const text = 'x'.repeat(20_000)
  await host.json('POST', '/api/approvals', { agent_id: agents[0].id, action: 'publish', payload: { text } })
  await using tab = await openTab(browser, host.url)
  const card = tab.page.getByRole('article', { name: /wants to use publish/ })
  await expect
    .poll(async () => (await card.getByLabel('Exactly what will be done').innerText()).length)
    .toBe(20_000 + 'text: '.length)
  await card.getByRole('button', { name: 'Approve once' }).click()
  await card.waitFor({ state: 'detached' })
  expect(tab.complaints).toEqual([])
})

test('there is no button for what the caller cannot approve', async () => {
  await using host = await daemon()
  const { body: agents } = await host.json('GET', '/api/agents')
  await host.json('POST', '/api/approvals', { agent_id: agents[0].id, action: 'publish', payload: { text: 'x' } })
  await using tab = await openTab(browser, host.url, {
    // As a paired device gets it for a call whose effect is lasting.
    before: async (page) =>
      void (await page.route('**/api/approvals?*', async (route) => {
        const answer = await route.fetch()
        const { approvals } = await answer.json()
        await route.fulfill({ json: { approvals: approvals.map((one: object) => ({ ...one, scopes: [] })) } })
      })),
  })
  const card = tab.page.getByRole('article', { name: /wants to use publish/ })
  await card.getByText('whoever has the API key can approve it').waitFor()
  expect(await card.getByRole('button').allTextContents()).toEqual(['Reject'])
})

test('a form is filled in before it is sent, and the browser says what is missing', async () => {
  await using host = await daemon()
  const { body: agents } = await host.json('GET', '/api/agents')
  const properties = {
    city: { type: 'string', title: 'City' },
    nights: { type: 'integer', title: 'Nights', minimum: 1, default: 2 },
    quiet: { type: 'boolean', title: 'Quiet', default: true },
    meal: {
      type: 'string',
      title: 'Meal',
      oneOf: [
        { const: 'v', title: 'Vegan' },
        { const: 'm', title: 'Meat' },
      ],
    },
    extras: { type: 'array', title: 'Extras', items: { enum: ['wifi', 'pool'] }, default: ['pool'] },
  }
  const { body: asked } = await host.json('POST', '/api/approvals', {
    agent_id: agents[0].id,
    action: 'book',
    form: { title: 'Book a room', schema: { properties, required: ['city'] } },
  })
  await using tab = await openTab(browser, host.url)
  const card = tab.page.getByRole('article', { name: /wants to use book/ })
  const form = card.getByRole('form', { name: 'Book a room' })
  await card.getByRole('button', { name: 'Send' }).click()
  expect(await form.getByLabel('City').evaluate((field: HTMLInputElement) => field.validity.valueMissing)).toBe(true)
  await form.getByLabel('City').fill('Oslo')
  await form.getByLabel('Nights').fill('3')
  await form.getByLabel('Quiet').uncheck()
  await form.getByLabel('Meal').selectOption('Vegan')
  await form.getByLabel('wifi').check()
  await screenshot(tab, 'approval-form')
  await card.getByRole('button', { name: 'Send' }).click()
  await card.waitFor({ state: 'detached' })
  expect((await host.json('GET', `/api/approvals/${asked.id}`)).body).toMatchObject({
    status: 'approved',
    content: { city: 'Oslo', nights: 3, quiet: false, meal: 'v', extras: ['wifi', 'pool'] },
  })
  expect(tab.complaints).toEqual([])
})

test('fits a phone, in the dark, with a request that is long', async () => {
  await using host = await daemon()
  await using tab = await asking(host, 'word '.repeat(300), {
    viewport: { width: 360, height: 640 },
    colorScheme: 'dark',
  })
  const approve = tab.page.getByRole('button', { name: 'Approve once' })
  await expect.poll(() => approve.isEnabled()).toBe(true)
  await screenshot(tab, 'approval-phone')
  const box = await approve.boundingBox()
  expect(box && box.x >= 0 && box.x + box.width <= 360 && box.y + box.height <= 640).toBe(true)
  expect(await tab.page.evaluate(() => document.documentElement.scrollWidth)).toBe(360)
  await approve.click()
  await approve.waitFor({ state: 'detached' })
})

test('both answers are in view on a phone however much there is to read before them', async () => {
  await using host = await daemon()
  const { body: agents } = await host.json('GET', '/api/agents')
  await host.json('POST', '/api/approvals', {
    agent_id: agents[0].id,
    action: 'publish',
    description: 'It may come from anywhere. '.repeat(20),
    payload: { a: 1, b: 2 },
  })
  await using tab = await openTab(browser, host.url, { viewport: { width: 360, height: 640 } })
  const section = await tab.page.getByRole('region', { name: 'Waiting for your approval' }).boundingBox()
  for (const name of ['Reject', 'Approve once']) {
    const box = await tab.page.getByRole('button', { name }).boundingBox()
    expect(box && section && box.y >= section.y && box.y + box.height <= section.y + section.height, name).toBe(true)
  }
})

test('a command is put in a sentence and in large type, and approved for the conversation it asks no more', async () => {
  await using host = await daemon()
  const { body } = await host.json('POST', '/api/agents', {
    manifest_toml: 'name = "digger"\n[capabilities]\ntools = ["*"]\nshell = ["*"]\n',
  })
  await using tab = await openTab(browser, host.url, { path: `/#${body.agent_id}` })
  const { page } = tab
  const say = async (text: string): Promise<void> => {
    await page.getByRole('textbox', { name: /^Message to/ }).fill(text)
    await page.keyboard.press('Enter')
  }
  await say('use shell_exec {"command": "date -u"}')
  const card = page.getByRole('article', { name: 'digger wants to run the program date.' })
  await card.getByText('low risk', { exact: true }).waitFor()
  const command = card.getByLabel('Exactly what will be done')
  expect(await command.innerText()).toBe('date -u')
  expect(await command.evaluate((element) => parseFloat(getComputedStyle(element).fontSize))).toBeGreaterThanOrEqual(16)
  expect(await card.locator('details').getAttribute('open')).toBeNull()
  await screenshot(tab, 'approval-command')
  await card.locator('summary').click()
  await card.getByText(/covers any date that only reads/).waitFor()
  await card.getByRole('button', { name: 'For this conversation' }).click()
  await page.locator('.answer', { hasText: 'exit code 0' }).locator('.answer-foot').waitFor()
  await say('use shell_exec {"command": "date +%s"}')
  await expect.poll(() => page.locator('.answer', { hasText: 'exit code 0' }).locator('.answer-foot').count()).toBe(2)
  expect(await page.getByRole('article').count()).toBe(0)
  expect((await host.json('GET', '/api/approvals/grants')).body.grants).toMatchObject([{ uses: 1 }])
  // What passes without a question is in view, and ends with the keyboard.
  const grants = page.getByText('1 standing approval', { exact: true })
  await grants.focus()
  await page.keyboard.press('Enter')
  const item = page.getByRole('list', { name: 'Standing approvals' }).getByRole('listitem')
  await item.getByText(/shell_exec: any date that only reads.* until this conversation ends/).waitFor()
  await item.getByText('Used once.').waitFor()
  await screenshot(tab, 'grants')
  await item.getByRole('button', { name: 'Revoke the approval of shell_exec' }).press('Enter')
  await item.waitFor({ state: 'detached' })
  expect((await host.json('GET', '/api/approvals/grants')).body.grants).toEqual([])
  await say('use shell_exec {"command": "date +%s"}')
  await card.getByRole('button', { name: 'Reject' }).click()
  await card.getByRole('button', { name: 'Reject' }).click()
  await card.waitFor({ state: 'detached' })
  expect(tab.complaints).toEqual([])
})

test('the agent reads why it was rejected', async () => {
  await using host = await daemon()
  await using tab = await asking(host, 'three')
  const { page } = tab
  const card = page.getByRole('article', { name: /wants to use launch/ })
  await card.getByRole('button', { name: 'Reject' }).click()
  await card.getByLabel('Reason, which the agent reads').press('Escape')
  await card.getByRole('button', { name: 'Approve once' }).waitFor()
  const reject = card.getByRole('button', { name: 'Reject' })
  expect(await reject.evaluate((button) => button === document.activeElement)).toBe(true)
  await card.getByRole('button', { name: 'Reject' }).click()
  await card.getByLabel('Reason, which the agent reads').fill('not on a Friday')
  await screenshot(tab, 'approval-reason')
  expect(await accessibilityProblems(page)).toEqual([])
  await card.getByRole('button', { name: 'Reject' }).click()
  await page.locator('.answer', { hasText: 'not on a Friday' }).waitFor()
  expect((await host.json('GET', '/api/approvals')).body.approvals[0]).toMatchObject({
    status: 'rejected',
    reason: 'not on a Friday',
  })
  expect(tab.complaints).toEqual([])
})

test('the keys y and n answer while the card has the focus, and never what is typed', async () => {
  await using host = await daemon()
  await using tab = await asking(host, 'keys')
  const { page } = tab
  const card = page.getByRole('article', { name: /wants to use launch/ })
  await expect.poll(() => card.getByRole('button', { name: 'Approve once' }).isEnabled()).toBe(true)
  const box = page.getByRole('textbox', { name: /^Message to/ })
  await box.press('y')
  await box.press('n')
  expect(await box.inputValue()).toBe('yn')
  await card.getByRole('heading').click()
  await card.getByText('Y approves once, N rejects').waitFor()
  await screenshot(tab, 'approval-keys')
  await page.keyboard.press('Control+y')
  await page.keyboard.press('n')
  const reason = card.getByLabel('Reason, which the agent reads')
  await reason.press('y')
  expect(await reason.inputValue()).toBe('y')
  await reason.press('Escape')
  expect((await host.json('GET', '/api/approvals')).body.approvals[0].status).toBe('pending')
  await page.keyboard.press('y')
  await page.locator('.answer', { hasText: 'launched keys' }).waitFor()
  expect(tab.complaints).toEqual([])
})

test('“Always …” says which key of the file decides, and approves nothing', async () => {
  await using host = await daemon()
  await using tab = await asking(host, 'four')
  const { page } = tab
  const card = page.getByRole('article', { name: /wants to use launch/ })
  await card.getByText('Details').click()
  await card.getByRole('button', { name: 'Always …' }).click()
  const dialog = page.getByRole('dialog', { name: 'Let digger do this without asking?' })
  const [approval] = (await host.json('GET', '/api/approvals')).body.approvals
  await dialog.getByText(`"${approval.agent_id}" = "never"`).waitFor()
  await screenshot(tab, 'approval-always')
  expect(await accessibilityProblems(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Copy the lines' }).click()
  await dialog.getByRole('button', { name: 'Copied' }).waitFor()
  await dialog.getByRole('button', { name: 'Close' }).click()
  await card.getByRole('button', { name: 'Approve once' }).waitFor()
  expect((await host.json('GET', '/api/approvals')).body.approvals[0].status).toBe('pending')
  expect(tab.complaints).toEqual([])
})

test('approvals become notifications once the user asked for them, while the page is not in view', async () => {
  await using host = await daemon()
  const { body: agents } = await host.json('GET', '/api/agents')
  const ask = (action: string): Promise<unknown> =>
    host.json('POST', '/api/approvals', { agent_id: agents[0].id, action, payload: { action } })
  await using tab = await openTab(browser, host.url, {
    async before(page) {
      // The notifications of the browser, which a headless one has no place for.
      await page.addInitScript(() => {
        const shown: string[] = []
        class Fake extends EventTarget {
          static permission = 'default'
          static requestPermission(): Promise<string> {
            Fake.permission = 'granted'
            return Promise.resolve('granted')
          }
          constructor(title: string, { body }: { body: string }) {
            super()
            if (Fake.permission === 'granted') shown.push(`${title}: ${body}`)
          }
          close(): void {}
        }
        Object.assign(window, { Notification: Fake, shown, away: false })
        Object.defineProperty(document, 'hidden', { get: () => (window as unknown as { away: boolean }).away })
      })
    },
  })
  const { page } = tab
  await ask('first')
  await page.getByRole('article', { name: /wants to use first/ }).waitFor()
  expect(await page.evaluate('Notification.permission')).toBe('default')
  await page.getByRole('button', { name: 'Notify me of the next ones' }).click()
  await page.getByRole('button', { name: 'Notify me of the next ones' }).waitFor({ state: 'detached' })
  await ask('second')
  await page.getByRole('article', { name: /wants to use second/ }).waitFor()
  expect(await page.evaluate('window.shown')).toEqual([])
  await page.evaluate('window.away = true')
  await ask('third')
  await expect
    .poll(() => page.evaluate<string[]>('window.shown'))
    .toEqual([expect.stringMatching(/^assistant needs your approval: third/)])
  expect(await page.title()).toMatch(/^\(3\) Approvals wait/)
  expect(tab.complaints).toEqual([])

  // Chrome on Android refuses to make one, so it is not offered.
  await using phone = await openTab(browser, host.url, {
    async before(page) {
      await page.addInitScript(() => {
        function Notification(): never {
          throw new TypeError('Illegal constructor')
        }
        Object.assign(window, { Notification: Object.assign(Notification, { permission: 'default' }) })
      })
    },
  })
  await phone.page.getByRole('article', { name: /wants to use third/ }).waitFor()
  expect(await phone.page.getByRole('button', { name: 'Notify me of the next ones' }).count()).toBe(0)
  expect(phone.complaints).toEqual([])
})
