import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems } from '../webchat/accessibility.ts'
import { builtPage, launchBrowser, openTab } from '../webchat/browser.ts'
import type { Tab } from '../webchat/browser.ts'

const PAGE = '/pages/workflows/workflows/workflows.html'

let browser: Browser
let home: string
let host: TestHost
beforeAll(async () => {
  const [launched, built, folder] = await Promise.all([
    launchBrowser(),
    builtPage(),
    mkdtemp(join(tmpdir(), 'svc-workflows-page-')),
  ])
  browser = launched
  home = folder
  host = await startHost({ home, config: { plugins: { webchat: { page_dir: built.folder } } } })
  await host.json('POST', '/api/workflows', {
    name: 'greeting <b>',
    description: 'Greets',
    steps: [
      { name: 'ask', agent_name: 'assistant', prompt: 'help {{input}}', output_var: 'asked' },
      { name: 'wait', type: 'wait', with: { seconds: 600 } },
    ],
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const open = (): Promise<Tab> => openTab(browser, host.url, { path: PAGE })
const button = (place: Page | Locator, name: string): Locator => place.getByRole('button', { name, exact: true })

it('runs a workflow with an input and shows its steps as they go on, until it is cancelled', async () => {
  await using tab = await open()
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await page.getByText('No workflow has run yet.').waitFor()
  await button(page, 'Run greeting <b>').click()
  await dialog.getByLabel('Input').fill('me')
  await button(dialog, 'Run').click()

  const panel = page.getByRole('region', { name: 'Run' })
  await panel.locator('[data-step=ask] .badge.good').waitFor()
  await panel.locator('[data-step=wait]').getByText('waiting', { exact: true }).waitFor()
  await panel.locator('[data-step=ask] summary', { hasText: 'Prompt' }).click()
  expect(await panel.locator('[data-step=ask] details', { hasText: 'Prompt' }).locator('pre').innerText()).toBe(
    'help me',
  )
  await button(panel, 'Cancel').click()
  await panel.locator('.card-top .badge', { hasText: 'Cancelled' }).waitFor()
  await page.locator('#runs .badge', { hasText: 'Cancelled' }).waitFor()

  await page.reload()
  await panel.locator('.card-top .badge', { hasText: 'Cancelled' }).waitFor()
  await button(panel, 'Close').click()
  await panel.waitFor({ state: 'hidden' })
  expect(tab.complaints).toEqual([])
})

it('draws a run as a graph that follows it, with what each step read and wrote', async () => {
  const step = (name: string, more: object) => ({ name, agent_name: 'assistant', prompt: `echo ${name}`, ...more })
  const { body } = await host.json('POST', '/api/workflows', {
    name: 'forked',
    steps: [
      step('left', { mode: 'fan_out' }),
      step('right', { mode: 'fan_out' }),
      step('never', { mode: 'conditional', condition: 'no such word' }),
      { name: 'ok', type: 'approval', prompt: 'Go on?' },
      { name: 'call', type: 'http', with: { url: 'http://127.0.0.1:1/' } },
    ],
  })
  const started = await host.json('POST', `/api/workflows/${body.workflow_id}/run?wait=false`, { input: 'it' })
  const runId = started.body.run_id
  await using tab = await openTab(browser, host.url, {
    path: `${PAGE}#${runId}`,
    colorScheme: 'dark',
    viewport: { width: 320, height: 700 },
  })
  const { page } = tab
  const graph = page.getByRole('group', { name: 'Graph of the steps' })
  const node = (name: RegExp): Locator => graph.getByRole('button', { name })
  await node(/^left assistant completed/).waitFor()
  await node(/^never assistant if no such word left out$/).waitFor()
  await node(/^call http to come$/).waitFor()
  // An arrow from each of the two, one around what may be left out, and two to the end.
  expect(await graph.locator('svg > path').count()).toBe(5)

  await host.json(
    'POST',
    `/api/approvals/${(await host.json('GET', '/api/approvals')).body.approvals[0].id}/approve`,
    {},
  )
  await node(/^call http failed/).waitFor()
  await node(/^right/).focus()
  await page.keyboard.press('Enter')
  await page.getByText('Step 2 of 5').waitFor()
  expect(page.url()).toMatch(new RegExp(`#${runId}/2$`))
  expect(await page.getByRole('list', { name: 'Steps' }).innerText()).toMatch(/^right\s+completed[^]+Output\s+right$/)
  expect(await node(/^right/).evaluate((button) => button === document.activeElement)).toBe(true)

  await page.goto(`${host.url}${PAGE}#${runId}/5`)
  await page.getByRole('list', { name: 'Steps' }).getByText('Requests to 127.0.0.1 are refused').waitFor()
  await button(page, 'Run again from here').click()
  await page.locator('#run .card-top .badge', { hasText: 'Failed' }).waitFor()
  await node(/^left assistant completed/).waitFor()
  expect(page.url()).not.toContain(runId)
  await host.json('DELETE', `/api/workflows/${body.workflow_id}`)
  // What axe tries is refused by the policy.
  expect(tab.complaints).toEqual([])
  expect(await accessibilityProblems(page)).toEqual([])
})

it('asks what a run asks, and goes on with one click', async () => {
  const { body } = await host.json('POST', '/api/workflows', {
    name: 'asking',
    steps: [{ name: 'ok', type: 'approval', prompt: 'Publish {{input}}?' }],
  })
  const started = await host.json('POST', `/api/workflows/${body.workflow_id}/run?wait=false`, { input: 'it' })
  await using tab = await openTab(browser, host.url, { path: `${PAGE}#${started.body.run_id}` })
  const panel = tab.page.getByRole('region', { name: 'Run' })
  await panel.getByText('Publish it?').first().waitFor()
  await button(panel, 'Approve ok').click()
  await panel.locator('.card-top .badge', { hasText: 'Completed' }).waitFor()
  await host.json('DELETE', `/api/workflows/${body.workflow_id}`)
  expect(tab.complaints).toEqual([])
})

it('shows the steps, what a run would do, and a file that is wrong; removes a workflow', async () => {
  await mkdir(join(home, 'workflows'))
  await writeFile(join(home, 'workflows', 'wrong.toml'), 'steps = []')
  await using tab = await open()
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await page.getByText('workflows/wrong.toml: steps: a workflow has one step at least').waitFor()
  await button(page, 'Steps greeting <b>').click()
  await dialog.getByText('help {{input}}').waitFor()
  await button(dialog, 'Close').click()
  await button(page, 'Rehearse greeting <b>').click()
  await dialog.getByText(/^asks the agent "assistant", \S+\/\S+/).waitFor()
  await button(dialog, 'Close').click()

  await button(page, 'Remove greeting <b>').click()
  await button(dialog, 'Remove').click()
  await page.getByText('None yet.').waitFor()
  expect(tab.complaints).toEqual([])
})
