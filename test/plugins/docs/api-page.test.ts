import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems } from '../webchat/accessibility.ts'
import { builtPage, launchBrowser, openTab } from '../webchat/browser.ts'

const KEY = 'a-key-of-a-test'
let browser: Browser
let host: TestHost
let agent: string
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    memory: true,
    config: { api_key: KEY, plugins: { webchat: { page_dir: (await builtPage()).folder } } },
  })
  const made = await host.json('POST', '/api/agents', { manifest_toml: 'name = "ada"' }, bearer)
  agent = made.body.agent_id
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})
const bearer = { authorization: `Bearer ${KEY}` }

/** The page with the key; what a route refuses is on purpose. */
async function open(path = '/docs', options: Parameters<typeof openTab>[2] = {}) {
  const tab = await openTab(browser, host.url, {
    path,
    ...options,
    before: async (page) => {
      await page.addInitScript((key) => sessionStorage.setItem('svc.credential', JSON.stringify({ key })), KEY)
    },
  })
  await tab.page.getByRole('status').filter({ hasText: 'routes' }).waitFor()
  return tab
}

describe('the API reference', () => {
  it('is one page without a key, and asks for it before it shows the routes', async () => {
    const page = await host.fetch('/docs')
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    await using tab = await openTab(browser, host.url, { path: '/docs' })
    await tab.page.getByLabel('API key').fill(KEY)
    await tab.page.getByRole('button', { name: 'Show the routes' }).click()
    await tab.page.getByRole('heading', { name: 'agents', exact: true }).waitFor()
    expect(tab.complaints.filter((text) => !text.includes('401'))).toEqual([])
  })

  it('shows every route of openapi.json under its group', async () => {
    await using tab = await open()
    const { paths } = (await host.json('GET', '/api/openapi.json', undefined, bearer)).body
    const ids = Object.values<Record<string, { operationId: string }>>(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    )
    const shown = await tab.page.locator('details.route').evaluateAll((all) => all.map(({ id }) => id))
    expect(shown.toSorted()).toEqual(ids.toSorted())
    const group = tab.page.getByRole('region', { name: 'goals' })
    expect(await group.locator('summary').first().innerText()).toContain('/api/goals')
    expect(tab.complaints).toEqual([])
  })

  it('shows parameters, the fields of the body, answers and errors of each, and none fails to open', async () => {
    await using tab = await open()
    const { page } = tab
    await page.locator('details.route').evaluateAll((all) => {
      for (const one of all) (one as HTMLDetailsElement).open = true
    })
    await expect.poll(() => page.locator('details.route > .stack').count()).toBeGreaterThan(300)
    expect(await page.locator('details.route:not(:has(> .stack))').count()).toBe(0)
    const message = page.locator('#post_api_agents_by_id_message')
    const text = await message.innerText()
    for (const part of ['needed, as', 'Idempotency-Key', 'message', 'string, required', 'response', 'rate_limit'])
      expect(text).toContain(part)
    expect(tab.complaints).toEqual([])
  })

  it('finds routes by words and by group', async () => {
    await using tab = await open()
    const { page } = tab
    await page.getByLabel('Search').fill('goals delete')
    await page.getByText(/^1 of \d+ routes$/).waitFor()
    expect(await page.locator('details.route:visible').innerText()).toContain('/api/goals/{id}')
    await page.getByLabel('Search').fill('')
    await page.getByLabel('Group').selectOption('kv')
    expect(await page.locator('section.group:visible h2').allInnerTexts()).toEqual(['kv'])
    await page.getByLabel('Search').fill('nothing-like-it')
    await page.getByText('No route has all of these words').waitFor()
  })

  it('opens the route that the address names', async () => {
    await using tab = await open('/docs#get_api_health')
    const health = tab.page.locator('#get_api_health')
    await health.locator('> .stack').waitFor()
    await expect.poll(async () => (await health.boundingBox())?.y).toBeLessThan(200)
    expect(await health.getByText('not needed').count()).toBe(1)
  })

  it('tries a route with the key: parameters, body, status and answer', async () => {
    await using tab = await open('/docs#post_api_agents_by_id_message')
    const form = tab.page.getByRole('form', { name: 'Try POST /api/agents/{id}/message', exact: true })
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByText('Fill in id.').waitFor()
    await form.getByLabel('id', { exact: true }).fill(agent)
    await form.getByLabel('Body (JSON)').fill('{"message": "echo it\'s me"}')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByText(/^200 OK · \d+ ms · application\/json/).waitFor()
    expect(JSON.parse(await form.getByLabel('Answer').innerText())).toMatchObject({ response: expect.anything() })
    await form.getByText('The same with curl').click()
    const command = await form.getByLabel('The command').innerText()
    expect(command).toContain(`'${host.url}/api/agents/${agent}/message'`)
    expect(command).toContain(String.raw`it'\''s me`)
    expect(command).not.toContain(KEY)
    expect(tab.complaints).toEqual([])
  })

  it('shows the error of a route, and a stream', async () => {
    await using tab = await open('/docs#get_api_agents_by_id')
    const { page } = tab
    const one = page.getByRole('form', { name: 'Try GET /api/agents/{id}', exact: true })
    await one.getByLabel('id', { exact: true }).fill('00000000-0000-4000-8000-000000000000')
    await one.getByRole('button', { name: 'Send' }).click()
    await one.getByText(/^404 Not Found/).waitFor()
    await page.goto(`${host.url}/docs#post_api_agents_by_id_message_stream`)
    const stream = page.getByRole('form', { name: 'Try POST /api/agents/{id}/message/stream' })
    await stream.getByLabel('id', { exact: true }).fill(agent)
    await stream.getByLabel('Body (JSON)').fill('{"message": "hello"}')
    await stream.getByRole('button', { name: 'Send' }).click()
    await stream.getByText('event: done').waitFor()
  })

  it.each([
    ['light', 1280],
    ['dark', 320],
  ] as const)('keeps WCAG 2.2 AA with a route open, in the %s theme, %i pixels wide', async (colorScheme, width) => {
    await using tab = await open('/docs#post_api_agents_by_id_message', {
      colorScheme,
      viewport: { width, height: 800 },
    })
    await tab.page.getByRole('form').first().waitFor()
    expect(await accessibilityProblems(tab.page)).toEqual([])
  })
})
