import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { join } from 'node:path'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'

/** Its jobs are given up at once, and done when they are run again. */
const failing = pluginText('failing', {
  before: "const Queue: any = defineService()('queue')",
  members: 'requires: { queue: Queue },',
  setup: `const { queue } = ctx.services
    const known = new Set()
    ctx.own('worker', queue.work('mail', {
      async run({ id }: any) {
        if (known.has(id)) return { outcome: 'done' }
        known.add(id)
        return { outcome: 'dead', reason: '<b>nobody</b> is there' }
      },
    }))
    await ctx.db.batch([queue.add({ lane: 'mail', id: 'letter', payload: 1 })])
    return {}`,
})

let browser: Browser
let host: TestHost
let folder: Awaited<ReturnType<typeof temporaryFolder>>
beforeAll(async () => {
  browser = await launchBrowser()
  folder = await temporaryFolder()
  const mailer = await writePlugin(join(folder.path, 'failing'), failing)
  host = await startHost({
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'queue', 'tasks', mailer],
    memory: true,
    config: { plugins: { watch: false } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await folder?.[Symbol.asyncDispose]()
})

it('posts, shows, filters, cancels and retries tasks, and runs dead jobs again', async () => {
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout"\n' })
  const long = '<i>x</i>'.repeat(300)
  await host.json<Json>('POST', '/api/tasks', { title: '<b>Free</b>', description: long })
  await using tab = await openTab(browser, host.url, { path: '/pages/tasks/tasks/tasks.html' })
  const { page } = tab
  const card = page.getByRole('region', { name: '<b>Free</b>' })
  await card.getByText('any agent').waitFor()
  expect(await card.getByText('<i>x</i>').first().textContent()).toHaveLength(1_000)
  await card.getByRole('button', { name: 'Whole text' }).click()
  await card.getByText(long, { exact: true }).waitFor()
  await card.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('“<b>Free</b>” is cancelled.').waitFor()
  await card.getByRole('button', { name: 'Try again' }).click()
  await card.getByText('pending').waitFor()

  await page.getByRole('button', { name: 'New task' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Title').fill('Read')
  await dialog.getByLabel('Agent').selectOption({ label: 'scout' })
  await dialog.getByRole('button', { name: 'Post' }).click()
  await page.getByRole('region', { name: 'Read' }).getByText('completed').waitFor()
  await page.getByLabel('State').selectOption('completed')
  await page.getByText('1 of 1').waitFor()
  expect(await card.count()).toBe(0)

  const job = page.getByRole('region', { name: 'mail letter' })
  await job.getByText('<b>nobody</b> is there').waitFor()
  await job.getByRole('button', { name: 'Run again' }).click()
  await page.getByText('The job runs again.').waitFor()
  await job.waitFor({ state: 'detached' })
  await page.getByRole('row', { name: /^mail 0 .*0 of 8 1 1 0 0$/ }).waitFor()
  expect(tab.complaints).toEqual([])
})
