import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'
import type { BuiltPage } from './browser.ts'

let browser: Browser
let built: BuiltPage
let host: TestHost
beforeAll(async () => {
  ;[browser, built] = await Promise.all([launchBrowser(), builtPage()])
  host = await startHost({ config: { plugins: { webchat: { page_dir: built.folder } } } })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

test('a whole conversation needs no mouse', async () => {
  await using tab = await openTab(browser, host.url)
  const { page } = tab
  await page.locator('#message-box:focus').waitFor()
  await page.keyboard.type('echo one')
  await page.keyboard.press('Shift+Enter')
  await page.keyboard.type('two')
  await page.keyboard.press('Enter')
  await page.locator('.answer .prose', { hasText: 'one' }).first().waitFor()
  expect(await page.locator('.bubble').last().innerText()).toBe('echo one\ntwo')
  expect(await page.locator('#message-box').inputValue()).toBe('')
  await page.locator('#message-box:focus').waitFor()
  expect(tab.complaints).toEqual([])
})

test('the focus goes from the skip link through agents and header to the conversation and the message box', async () => {
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.say('echo something')
  await tab.page.evaluate(() => {
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur()
  })
  const order: string[] = []
  for (let at = 0; at < 60 && order.at(-1) !== 'message-box'; at++) {
    await tab.page.keyboard.press('Tab')
    order.push(
      await tab.page.evaluate(
        () =>
          document.activeElement?.id ||
          document.activeElement?.getAttribute('aria-label') ||
          document.activeElement?.textContent?.trim() ||
          '',
      ),
    )
  }
  const places = [
    'Skip to the message box',
    'Aassistantoffline model',
    'New agent',
    'Model: offline model',
    'New conversation',
    'More for assistant',
    'Conversation with assistant',
    'Copy this answer',
    'message-box',
  ]
  expect(order.filter((name) => places.includes(name)).filter((name, at, all) => all.indexOf(name) === at)).toEqual(
    places,
  )
})

test('the skip link leads to the message box and keeps the agent in the address', async () => {
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  const address = tab.page.url()
  await tab.page.getByRole('link', { name: 'Skip to the message box' }).focus()
  await tab.page.keyboard.press('Enter')
  await tab.page.locator('#message-box:focus').waitFor()
  expect(tab.page.url()).toBe(address)
})

test('Escape closes a dialog and gives the focus back', async () => {
  await using tab = await openTab(browser, host.url)
  const button = tab.page.getByRole('button', { name: 'New agent' })
  await button.focus()
  await tab.page.keyboard.press('Enter')
  await tab.page.getByRole('dialog', { name: 'New agent' }).waitFor()
  expect(await tab.page.evaluate(() => document.activeElement?.id)).toBe('agent-name')
  await tab.page.keyboard.press('Escape')
  await tab.page.getByRole('dialog').waitFor({ state: 'detached' })
  await expect.poll(() => button.evaluate((element) => element === document.activeElement)).toBe(true)
})

test('landmarks, headings and controls have roles and names', async () => {
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.say('use kv_set {"key": "k", "value": 1}')
  const tree = await tab.page.locator('body').ariaSnapshot()
  for (const line of [
    'navigation "Agents"',
    'main:',
    'heading "assistant" [level=1]',
    'region "Conversation with assistant"',
    'heading "You" [level=2]',
    'textbox "Message to assistant"',
    'button "Send"',
    'button "New conversation"',
    'button "Model: offline model"',
    'button "More for assistant"',
    'button "Copy this answer"',
  ])
    expect(tree).toContain(line)
  const unnamed = await tab.page.evaluate(() =>
    [...document.querySelectorAll('button, input, textarea, a')]
      .filter(
        (element) =>
          !(
            element.textContent?.trim() ||
            element.getAttribute('aria-label') ||
            ((element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) && element.labels?.length)
          ),
      )
      .map((element) => element.outerHTML),
  )
  expect(unnamed).toEqual([])
})

test('a screen reader is told that an answer began and once what it was, not each token', async () => {
  await using tab = await openTab(browser, host.url)
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.page.evaluate(() => {
    const said: string[] = []
    Object.assign(window, { said })
    const region = document.querySelector('[aria-live="polite"]')
    if (region)
      new MutationObserver(() => {
        if (region.textContent) said.push(region.textContent)
      }).observe(region, { childList: true, subtree: true, characterData: true })
  })
  await tab.say('help')
  await expect
    .poll(() => tab.page.evaluate<string[]>('window.said'))
    .toEqual(['assistant is thinking', expect.stringMatching(/^assistant answered: .*What I understand/s)])
  expect(await tab.page.locator('.entries [aria-live], .entries[aria-live], .entries [role="log"]').count()).toBe(0)
})

test('on a phone of 360 pixels nothing is cut off and the agents are behind a button', async () => {
  await using tab = await openTab(browser, host.url, {
    viewport: { width: 360, height: 720 },
    hasTouch: true,
    isMobile: true,
  })
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.say(
    `echo | a | b | c | d | e |\n|---|---|---|---|---|---|\n| ${'wide '.repeat(9)}| x | y | z | w |\n\n\`\`\`\n${'x'.repeat(300)}\n\`\`\`\n\n${'y'.repeat(200)}`,
  )
  expect(await tab.page.evaluate(() => document.documentElement.scrollWidth)).toBe(360)
  expect(await tab.page.evaluate(() => document.querySelector('.scroll')?.scrollWidth)).toBeLessThanOrEqual(360)
  const small = await tab.page.evaluate(
    () =>
      [...document.querySelectorAll('.top button, .composer button')]
        .map((button) => button.getBoundingClientRect())
        .filter(({ width, height }) => width > 0 && (width < 40 || height < 40)).length,
  )
  expect(small).toBe(0)
  const agents = tab.page.getByRole('navigation', { name: 'Agents' })
  expect(await agents.isVisible()).toBe(false)
  await tab.page.getByRole('button', { name: 'Agents' }).click()
  await agents.getByRole('button', { name: /assistant/ }).waitFor()
  await tab.page.keyboard.press('Escape')
  await agents.waitFor({ state: 'hidden' })
  const opener = tab.page.getByRole('button', { name: 'Agents' })
  await expect.poll(() => opener.evaluate((element) => element === document.activeElement)).toBe(true)
  expect(tab.complaints).toEqual([])
})

test('at 320 pixels, which is 1280 at four times the size, nothing has to be scrolled sideways', async () => {
  const { body } = await host.json('POST', '/api/agents', {
    manifest_toml:
      'name = "long"\n[model]\nprovider = "builtin"\nmodel = "a-model-with-a-name-that-is-longer-than-others"',
  })
  await using tab = await openTab(browser, host.url, {
    viewport: { width: 320, height: 568 },
    path: `/#${body.agent_id}`,
  })
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.say('echo an answer')
  const outside = (): Promise<string[]> =>
    tab.page.evaluate(() =>
      [...document.querySelectorAll('.top *, .bottom *, .entries *')]
        .filter((element) => element.getBoundingClientRect().right > 320)
        .map(({ className }) => String(className)),
    )
  await expect.poll(outside).toEqual([])
  await host.json('DELETE', `/api/agents/${body.agent_id}`)
})

test('the end of the conversation stays in view when something comes up below it while the page scrolls', async () => {
  await using tab = await openTab(browser, host.url)
  for (const text of ['help', 'help', 'help']) await tab.say(text)
  const hidden = await tab.page.evaluate(async () => {
    const frame = document.querySelector<HTMLElement>('.scroll')
    const bottom = document.querySelector<HTMLElement>('.bottom')
    if (!frame || !bottom) throw new Error('there is no conversation')
    const frames = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++) await new Promise(requestAnimationFrame)
    }
    frame.scrollTop -= 40
    await frames(2)
    // Between frames, so that the next one begins with telling of this scrolling, when the room is smaller already.
    await new Promise((resolve) => setTimeout(resolve))
    frame.scrollTop = frame.scrollHeight
    bottom.style.paddingTop = '300px'
    await frames(3)
    return frame.scrollHeight - frame.scrollTop - frame.clientHeight
  })
  expect(hidden).toBeLessThan(2)
})

test('commands are chosen with the arrow keys', async () => {
  await using tab = await openTab(browser, host.url)
  const box = tab.page.getByRole('textbox', { name: /^Message to/ })
  await box.fill('/mod')
  await tab.page.getByRole('option', { selected: true }).waitFor()
  await tab.page.keyboard.press('ArrowUp')
  await tab.page.keyboard.press('ArrowUp')
  await tab.page.keyboard.press('Enter')
  expect(await box.inputValue()).toBe('/model')
  await box.fill('/mod')
  await tab.page.getByRole('option', { selected: true }).waitFor()
  await tab.page.keyboard.press('ArrowUp')
  await tab.page.keyboard.press('ArrowDown')
  await expect.poll(() => box.evaluate((element) => element === document.activeElement)).toBe(true)
})

test.each(['light', 'dark'] as const)(
  'text has a contrast of at least 4.5 to 1 in the %s colours',
  async (colorScheme) => {
    await using tab = await openTab(browser, host.url, { colorScheme, reducedMotion: 'reduce' })
    await tab.page.getByText('Connected', { exact: true }).waitFor()
    await tab.say('use kv_set {"key": "k", "value": 1}')
    await tab.say('echo a [link](https://example.com) and `code`\n\n> quoted')
    const poor = await tab.page.evaluate(() => {
      const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true })
      const toRgba = (color: string): readonly number[] => {
        if (!context) return []
        context.clearRect(0, 0, 1, 1)
        context.fillStyle = color
        context.fillRect(0, 0, 1, 1)
        return [...context.getImageData(0, 0, 1, 1).data]
      }
      const luminance = (rgb: readonly number[]): number =>
        rgb
          .slice(0, 3)
          .map((value) => value / 255)
          .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
          .reduce((sum, value, at) => sum + value * ([0.2126, 0.7152, 0.0722][at] ?? 0), 0)
      const backdrop = (element: Element | null): readonly number[] => {
        if (!element) return [255, 255, 255, 255]
        const own = toRgba(getComputedStyle(element).backgroundColor)
        return own[3] === 255 ? own : backdrop(element.parentElement)
      }
      return [...document.querySelectorAll('body *')].flatMap((element) => {
        const text = [...element.childNodes]
          .filter((node) => node.nodeType === Node.TEXT_NODE)
          .map((node) => node.textContent?.trim())
          .join('')
        if (text === '' || !element.checkVisibility() || element.closest('.hidden, :disabled, .skip')) return []
        const [a, b] = [luminance(toRgba(getComputedStyle(element).color)), luminance(backdrop(element))].sort(
          (x, y) => y - x,
        )
        const ratio = ((a ?? 0) + 0.05) / ((b ?? 0) + 0.05)
        return ratio < 4.5 ? [`${text.slice(0, 40)}: ${ratio.toFixed(2)}`] : []
      })
    })
    expect(poor).toEqual([])
  },
)

test('who asked for less motion gets none', async () => {
  await using tab = await openTab(browser, host.url, { reducedMotion: 'reduce' })
  await tab.page.getByText('Connected', { exact: true }).waitFor()
  await tab.page.getByRole('textbox', { name: /^Message to/ }).fill('help')
  await tab.page.keyboard.press('Enter')
  await tab.page.locator('.answer').first().waitFor()
  expect(await tab.page.evaluate(() => document.getAnimations().length)).toBe(0)
})
