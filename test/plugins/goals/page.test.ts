import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'

let browser: Browser
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'goals'],
    memory: true,
    config: { plugins: { watch: false } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

it('shows the tree of goals, and makes, edits and deletes them', async () => {
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout"\n' })
  const due = '2026-12-31T18:00:30.000Z'
  const { body: root } = await host.json('POST', '/api/goals', {
    title: '<b>Report</b>',
    agent_id: 'scout',
    due_at: due,
  })
  await using tab = await openTab(browser, host.url, { path: '/pages/goals/goals/goals.html' })
  const { page } = tab
  const card = page.getByRole('region', { name: '<b>Report</b>', exact: true })
  await card.getByText('scout').waitFor()
  await card.getByRole('button', { name: 'Add a part' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Title').fill('Sources')
  await dialog.getByLabel('Progress in').fill('130')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByRole('alert').getByText('progress').waitFor()
  await dialog.getByLabel('Progress in').fill('30')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByText('“Sources” is created.').waitFor()
  await page.getByText('2 of 2 are open').waitFor()
  expect((await host.json('GET', `/api/goals/${root.id}/children`)).body.children).toMatchObject([
    { title: 'Sources', progress: 30, agent_id: root.agent_id },
  ])
  await card.getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Status').selectOption('completed')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await card.getByText('completed').waitFor()
  // The rest stays as it is, the seconds too.
  expect((await host.json('GET', `/api/goals/${root.id}`)).body).toMatchObject({ status: 'completed', due_at: due })
  await card.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('is deleted, with 1 below it.').waitFor()
  await page.getByText('There are no goals yet.').waitFor()
  // That of the refused progress.
  expect(tab.complaints).toEqual([expect.stringContaining('status of 400')])
})
