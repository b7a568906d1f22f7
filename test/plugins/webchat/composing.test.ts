import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import { startHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage, Tab } from './browser.ts'

let browser: Browser
let built: BuiltPage
beforeAll(async () => {
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
})
afterAll(async () => {
  await browser?.close()
})
const plugins = () => ({ webchat: { page_dir: built.folder } })
const screenshot = async ({ page }: Tab, name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}

test('the list of commands obeys arrows, Tab, Enter and Escape, and the focus stays in the box', async () => {
  await using host = await startHost({ config: { plugins: plugins() } })
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  const box = page.getByRole('textbox', { name: /^Message to/ })
  const chosen = page.getByRole('option', { selected: true })
  const { commands } = (await host.json('GET', '/api/commands?surface=web')).body
  const names = commands.map(({ name }: { name: string }) => `/${name}`)
  await expect
    .poll(async () => {
      await box.fill('/')
      return page.getByRole('option').locator('code').allInnerTexts()
    })
    .toEqual(names)
  expect(await chosen.innerText()).toContain(names[0])
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  expect(await chosen.innerText()).toContain(names[2])
  await screenshot(tab, 'commands')
  await page.keyboard.press('ArrowUp')
  expect(await chosen.innerText()).toContain(names[1])
  await box.fill('/res')
  expect(await chosen.innerText()).toContain('/new')
  await box.fill('/model')
  await page.keyboard.press('ArrowUp')
  expect(await chosen.innerText()).toContain('/models')
  await box.fill('/mode')
  await page.keyboard.press('Tab')
  expect(await box.inputValue()).toBe('/model')
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('message-box')
  expect(await page.getByRole('listbox').count()).toBe(0)
  await box.fill('')
  await page.keyboard.type('/us')
  await page.keyboard.press('Enter')
  expect(await box.inputValue()).toBe('/usage')
  await page.keyboard.press('Enter')
  await page.locator('.answer', { hasText: 'This session:' }).waitFor()
  await page.keyboard.type('/')
  await page.keyboard.press('ArrowUp')
  expect(await chosen.innerText()).toContain(names.at(-1))
  await page.keyboard.press('Escape')
  expect(await page.getByRole('listbox').count()).toBe(0)
  expect(await box.inputValue()).toBe('/')
  await page.keyboard.type('h')
  expect(await chosen.innerText()).toContain('/help')
  expect(tab.complaints).toEqual([])
})

test('a message during an answer waits in view, can be taken back, and is sent when the answer has ended', async () => {
  await using stage = await openChat({ config: { plugins: plugins() } })
  const [one, two] = [byHand(), byHand()]
  stage.fake.script({ text: one.text }, { text: two.text })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  const box = page.getByRole('textbox', { name: /^Message to/ })
  const say = async (text: string): Promise<void> => {
    await box.fill(text)
    await box.press('Enter')
  }
  await say('first')
  await stage.fake.request(0)
  await say('second')
  await say('third')
  const queue = page.getByRole('region', { name: 'Waiting to be sent' })
  await expect.poll(() => queue.locator('.queue-text').allInnerTexts()).toEqual(['second', 'third'])
  await screenshot(tab, 'queue')
  await queue.getByRole('button', { name: 'Take back' }).nth(1).click()
  expect(await box.inputValue()).toBe('third')
  expect(await page.locator('.question').count()).toBe(1)
  one.say('one')
  one.end()
  await page.locator('.bubble', { hasText: 'second' }).waitFor()
  await queue.waitFor({ state: 'detached' })
  two.say('two')
  two.end()
  await page.locator('.answer', { hasText: 'two' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['first', 'second'])
  expect(tab.complaints).toEqual([])
})

test('what waits to be sent is there after a reload, is sent once and by hand, and never in another conversation', async () => {
  await using stage = await openChat({ config: { plugins: plugins() } })
  const [one, two] = [byHand(), byHand()]
  stage.fake.script({ text: one.text }, { text: two.text })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  const box = page.getByRole('textbox', { name: /^Message to/ })
  const say = async (text: string): Promise<void> => {
    await box.fill(text)
    await box.press('Enter')
  }
  await page.getByText('Connected', { exact: true }).waitFor()
  await say('first')
  await stage.fake.request(0)
  await say('second')
  await say('third')
  const queue = page.getByRole('region', { name: 'Waiting to be sent' })
  await expect.poll(() => queue.locator('.queue-text').allInnerTexts()).toEqual(['second', 'third'])
  await page.reload()
  await expect.poll(() => queue.locator('.queue-text').allInnerTexts()).toEqual(['second', 'third'])
  one.say('one')
  one.end()
  await page.locator('.answer', { hasText: 'one' }).locator('.answer-foot').waitFor()
  await queue.getByText('not sent yet').first().waitFor()
  await screenshot(tab, 'queue-held')
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
  await queue.waitFor({ state: 'detached' })
  await page
    .getByRole('region', { name: 'Conversations' })
    .getByRole('button', { name: /^first/ })
    .click()
  await queue.getByRole('button', { name: 'Send now' }).click()
  await page.locator('.bubble', { hasText: 'second' }).waitFor()
  await stage.fake.request(1)
  await page.reload()
  await expect.poll(() => queue.locator('.queue-text').allInnerTexts()).toEqual(['third'])
  await queue.getByRole('button', { name: 'Take back' }).click()
  expect(await box.inputValue()).toBe('third')
  two.say('two')
  two.end()
  await page.locator('.answer', { hasText: 'two' }).locator('.answer-foot').waitFor()
  expect((await stage.session()).messages.filter(({ role }) => role === 'User').map(({ content }) => content)).toEqual([
    'first',
    'second',
  ])
  expect(await page.evaluate(() => Object.keys(sessionStorage).filter((name) => name.includes('queue')))).toEqual([])
  expect(tab.complaints).toEqual([])
})

test('what waits is not sent when another conversation is opened', async () => {
  await using stage = await openChat({ config: { plugins: plugins() } })
  const one = byHand()
  stage.fake.script({ text: ['earlier'] }, { text: one.text }, { text: ['two'] })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await tab.say('an earlier one')
  await page.getByRole('button', { name: 'New conversation' }).click()
  await page.getByRole('heading', { name: /^Say something to/ }).waitFor()
  const box = page.getByRole('textbox', { name: /^Message to/ })
  await box.fill('first')
  await box.press('Enter')
  await stage.fake.request(1)
  await box.fill('second')
  await box.press('Enter')
  const queue = page.getByRole('region', { name: 'Waiting to be sent' })
  await queue.waitFor()
  const list = page.getByRole('region', { name: 'Conversations' })
  await list.getByRole('button', { name: /^an earlier one/ }).click()
  await page.locator('.bubble', { hasText: 'an earlier one' }).waitFor()
  await queue.waitFor({ state: 'detached' })
  one.say('one')
  one.end()
  await list.getByRole('button', { name: /^first/ }).click()
  await page.locator('.bubble', { hasText: 'second' }).waitFor()
  await page.locator('.answer', { hasText: 'two' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['first', 'second'])
  expect(stage.fake.requests).toHaveLength(3)
})

test('a command is answered where no WebSocket can be opened', async () => {
  await using host = await startHost({ config: { plugins: plugins() } })
  await using tab = await openTab(browser, host.url, {
    async before(page) {
      await page.addInitScript(() => {
        Object.assign(window, {
          WebSocket: () => {
            throw new Error('none here')
          },
        })
      })
    },
  })
  const { page } = tab
  await page.getByText('Connected over HTTP', { exact: true }).waitFor()
  await page.getByRole('textbox', { name: /^Message to/ }).fill('/usage')
  await page.keyboard.press('Enter')
  await page.locator('.answer', { hasText: 'This session:' }).waitFor()
})

test.each(['light', 'dark'] as const)('what a tool that waits is said to do can be read, %s', async (colorScheme) => {
  await using host = await startHost({ config: { plugins: plugins() } })
  const { body } = await host.json('POST', '/api/agents', {
    manifest_toml: 'name = "asks"\n[capabilities]\ntools = ["*"]\n[metadata]\napproval = "always"\n',
  })
  await using tab = await openTab(browser, host.url, { colorScheme, path: `/#${body.agent_id}` })
  const { page } = tab
  await page.getByRole('textbox', { name: /^Message to/ }).fill('use system_time {}')
  await page.keyboard.press('Enter')
  const state = page.locator('.tool.running .tool-state')
  await expect.poll(() => state.innerText()).toBe('waits for you')
  await screenshot(tab, `running-${colorScheme}`)
  const contrast = await state.evaluate((element) => {
    const luminance = (color: string): number => {
      const [r = 0, g = 0, b = 0] = (color.match(/[\d.]+/g) ?? []).map(Number).map((channel) => {
        const part = channel / 255
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    let behind: Element | null = element
    while (behind && /rgba\(.*, 0\)|transparent/.test(getComputedStyle(behind).backgroundColor))
      behind = behind.parentElement
    const style = getComputedStyle(element)
    const [a, b] = [luminance(style.color), luminance(getComputedStyle(behind ?? document.body).backgroundColor)].sort(
      (x, y) => y - x,
    )
    return { ratio: ((a ?? 0) + 0.05) / ((b ?? 0) + 0.05), opacity: style.opacity, animation: style.animationName }
  })
  expect(contrast.ratio).toBeGreaterThanOrEqual(4.5)
  // Nothing may fade the words away in between.
  expect(contrast).toMatchObject({ opacity: '1', animation: 'none' })
})
