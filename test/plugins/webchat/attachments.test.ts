import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import { accessibilityProblems } from './accessibility.ts'
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
const stageOf = (files: object = {}) =>
  openChat({ config: { plugins: { webchat: { page_dir: built.folder }, files } } })
const screenshot = async ({ page }: Tab, name: string): Promise<void> => {
  const folder = process.env['SVC_SCREENSHOTS']
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}
const boxOf = (page: Page) => page.getByRole('textbox', { name: /^Message to/ })
const chips = (page: Page) => page.locator('.composer').getByRole('list', { name: 'Attached files' })
/** Settles when the daemon has the file. */
const attached = (page: Page, name: string): Promise<void> =>
  chips(page).locator('.ready').getByText(name, { exact: true }).waitFor()
const sent = (page: Page) => page.locator('.question').getByRole('list', { name: 'Attached files' })
const notes = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('The code word is heron.') }
/** One pixel. */
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
/** Files from outside of the browser, as a drop or a paste brings them. */
const bring = (page: Page, type: 'drop' | 'dragover' | 'paste', base64: string, name: string): Promise<void> =>
  page.evaluate(
    ([type, base64, name]) => {
      const data = new DataTransfer()
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
      data.items.add(new File([bytes], name, { type: 'image/png' }))
      const target = document.getElementById('message-box')
      target?.dispatchEvent(
        type === 'paste'
          ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
          : new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }),
      )
    },
    [type, base64, name] as const,
  )

test('a file is chosen, sent with the message, read by the model, and shown by its name after a reload', async () => {
  await using stage = await stageOf()
  stage.fake.script({ text: ['It is heron.'] })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  const chooser = page.waitForEvent('filechooser')
  await page.getByRole('button', { name: 'Attach files' }).click()
  await (await chooser).setFiles(notes)
  await attached(page, 'notes.txt')
  expect(await tab.say('What is the code word?')).toContain('It is heron.')
  expect(JSON.stringify(stage.fake.requests[0])).toContain('The code word is heron.')
  expect(await chips(page).count()).toBe(0)
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['What is the code word?'])
  expect(await sent(page).allInnerTexts()).toEqual(['notes.txt'])
  await screenshot(tab, 'sent-file')
  await page.reload()
  await sent(page).getByText('notes.txt').waitFor()
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['What is the code word?'])
  expect(await page.locator('.question').count()).toBe(1)
  await page.getByText('What the agent was given of this file').click()
  expect(await page.locator('.question pre').innerText()).toContain('The code word is heron.')
  expect(await accessibilityProblems(page.mainFrame())).toEqual([])
  expect(tab.complaints).toEqual([])
})

test('a message with a file is shown once where the stream of the session tells of it first', async () => {
  await using stage = await stageOf()
  stage.fake.script({ text: ['It is heron.'] })
  const told = Promise.withResolvers<void>()
  await using tab = await openTab(browser, stage.host.url, {
    before: async (page) => {
      await page.exposeFunction('told', told.resolve)
      await page.addInitScript(() => {
        const { fetch } = window
        const held = Promise.withResolvers<void>()
        Object.assign(window, {
          release: held.resolve,
          WebSocket: function () {
            throw new Error('no sockets here')
          },
          async fetch(...request: Parameters<typeof fetch>) {
            const path = String(request[0])
            const response = await fetch(...request)
            if (path.endsWith('/message/stream')) await held.promise
            if (!/^\/api\/sessions\/[^/]+\/stream$/.test(path)) return response
            const watched = new TransformStream<Uint8Array, Uint8Array>({
              transform(chunk, out) {
                out.enqueue(chunk)
                if (new TextDecoder().decode(chunk).includes('What is the code word?'))
                  (window as unknown as { told(): void }).told()
              },
            })
            return new Response(response.body?.pipeThrough(watched) ?? null, response)
          },
        })
      })
    },
  })
  const { page } = tab
  await page.getByText('Connected over HTTP', { exact: true }).waitFor()
  await page.locator('input[type=file]').setInputFiles(notes)
  await attached(page, 'notes.txt')
  await boxOf(page).fill('What is the code word?')
  await boxOf(page).press('Enter')
  await told.promise
  await page.evaluate('window.release()')
  await page.locator('.answer', { hasText: 'It is heron.' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.question').count()).toBe(1)
  expect(await sent(page).allInnerTexts()).toEqual(['notes.txt'])
})

test('a picture is dropped or pasted, goes to the model as a picture, and needs no words', async () => {
  await using stage = await stageOf()
  stage.fake.script({ text: ['A red dot.'] })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  await bring(page, 'dragover', picture, 'dot.png')
  await page.getByText('Drop the files to attach them').waitFor()
  await screenshot(tab, 'drop')
  await bring(page, 'drop', picture, 'dot.png')
  await page.getByText('Drop the files to attach them').waitFor({ state: 'detached' })
  await attached(page, 'dot.png')
  await bring(page, 'paste', picture, 'copied.png')
  await attached(page, 'copied.png')
  await screenshot(tab, 'chips')
  expect(await accessibilityProblems(page)).toEqual([])
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.locator('.answer', { hasText: 'A red dot.' }).locator('.answer-foot').waitFor()
  expect(await page.locator('.bubble').allInnerTexts()).toEqual(['See the attached files.'])
  const pictures = () =>
    sent(page)
      .getByRole('img')
      .evaluateAll((images) =>
        images.map((image) => [image.getAttribute('alt'), (image as HTMLImageElement).naturalWidth]),
      )
  const both = [
    ['dot.png', 1],
    ['copied.png', 1],
  ]
  await expect.poll(pictures).toEqual(both)
  await screenshot(tab, 'pictures')
  expect(JSON.stringify(stage.fake.requests[0]).split('data:image/png;base64,')).toHaveLength(3)
  await page.reload()
  await expect.poll(pictures).toEqual(both)
  expect(tab.complaints).toEqual([])
})

test('a file on its way shows how far it is, holds the message back, and can be removed', async () => {
  await using stage = await stageOf()
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  const asked = Promise.withResolvers<void>()
  await page.route('**/upload', () => asked.resolve())
  await page.locator('input[type=file]').setInputFiles(notes)
  await asked.promise
  await page.getByRole('progressbar', { name: 'Sending notes.txt' }).waitFor()
  await screenshot(tab, 'uploading')
  expect(await accessibilityProblems(page)).toEqual([])
  await boxOf(page).fill('read this')
  await boxOf(page).press('Enter')
  expect(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true)
  expect(await boxOf(page).inputValue()).toBe('read this')
  const stopped = page.waitForEvent('requestfailed')
  await page.getByRole('button', { name: 'Remove notes.txt' }).click()
  await stopped
  expect(await chips(page).count()).toBe(0)
  expect(await page.getByRole('button', { name: 'Send', exact: true }).isEnabled()).toBe(true)
  expect(await page.locator('.question').count()).toBe(0)
})

test('a file that the daemon does not take says why, and the message waits until it is removed', async () => {
  await using stage = await stageOf({ max_upload_bytes: 1024 })
  stage.fake.script({ text: ['Fine.'] })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  await page.locator('input[type=file]').setInputFiles({ ...notes, buffer: Buffer.alloc(2000, 'x') })
  await chips(page).getByRole('alert').filter({ hasText: 'at most 1024 bytes' }).waitFor()
  await screenshot(tab, 'refused-file')
  expect(await accessibilityProblems(page)).toEqual([])
  await boxOf(page).fill('read this')
  expect(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true)
  await page.getByRole('button', { name: 'Remove notes.txt' }).click()
  expect(await tab.say('never mind')).toContain('Fine.')
})

test('a message with a file waits for the answer before it, and can be taken back with its file', async () => {
  await using stage = await stageOf()
  const one = byHand()
  stage.fake.script({ text: one.text }, { text: ['two'] })
  await using tab = await openTab(browser, stage.host.url)
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  await boxOf(page).fill('first')
  await boxOf(page).press('Enter')
  await stage.fake.request(0)
  await page.locator('input[type=file]').setInputFiles(notes)
  await attached(page, 'notes.txt')
  await boxOf(page).fill('second')
  await page.getByRole('button', { name: 'Send after this answer' }).click()
  const queue = page.getByRole('region', { name: 'Waiting to be sent' })
  await queue.getByText('notes.txt').waitFor()
  await queue.getByRole('button', { name: 'Take back' }).click()
  await attached(page, 'notes.txt')
  expect(await boxOf(page).inputValue()).toBe('second')
  await boxOf(page).press('Enter')
  await queue.getByText('notes.txt').waitFor()
  one.say('one')
  one.end()
  await page.locator('.answer', { hasText: 'two' }).locator('.answer-foot').waitFor()
  expect(await sent(page).allInnerTexts()).toEqual(['notes.txt'])
  expect(JSON.stringify(stage.fake.requests[1])).toContain('The code word is heron.')
  expect(await page.locator('.question').count()).toBe(2)
  expect(tab.complaints).toEqual([])
})

test('on a phone files are attached, no hint about keys is there, and what waits can be taken back', async () => {
  await using stage = await stageOf()
  await using tab = await openTab(browser, stage.host.url, {
    viewport: { width: 1024, height: 700 },
    colorScheme: 'dark',
    hasTouch: true,
    isMobile: true,
  })
  const { page } = tab
  await page.getByText('Connected', { exact: true }).waitFor()
  expect(await page.locator('.composer-hint').isVisible()).toBe(false)
  await page.setViewportSize({ width: 360, height: 640 })
  await page.locator('input[type=file]').setInputFiles([notes, { ...notes, name: `${'long-'.repeat(30)}.txt` }])
  await attached(page, 'notes.txt')
  await expect.poll(() => page.getByRole('progressbar').count()).toBe(0)
  await screenshot(tab, 'phone-chips')
  expect(await accessibilityProblems(page)).toEqual([])
  expect(await page.locator('.composer-hint').isVisible()).toBe(false)
  const slow = byHand()
  stage.fake.script({ text: slow.text })
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await boxOf(page).fill('a long message that waits for the answer before it and does not fit into one line')
  await page.getByRole('button', { name: 'Send after this answer' }).click()
  const back = await page.getByRole('button', { name: 'Take back' }).boundingBox()
  await screenshot(tab, 'phone-queue')
  expect(back && back.x + back.width).toBeLessThanOrEqual(360)
  slow.end()
})
