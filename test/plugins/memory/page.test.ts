import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { builtPage, launchBrowser, openTab } from '../webchat/browser.ts'

let browser: Browser
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    plugins: [...turnPlugins, 'queue', 'webchat', 'providers/builtin', 'system', 'approvals', 'memory'],
    memory: true,
    config: { plugins: { watch: false, webchat: { page_dir: (await builtPage()).folder } } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

it('shows memories and where they are known from, adds, edits, searches and forgets them', async () => {
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout"\n' })
  for (const content of ['<b>The boat</b> is red', 'The car is green'])
    await host.json('POST', '/api/memory', { content, agent_id: 'scout' })
  await using tab = await openTab(browser, host.url, { path: '/pages/memory/memory/memory.html' })
  const { page } = tab
  await page.getByText('2 of 2.').waitFor()
  await page.getByRole('button', { name: 'New memory' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('What is known').fill('The bike is old')
  await dialog.getByLabel('Person').fill('ann')
  await dialog.getByLabel('Tags').fill('bike, , old')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await page.getByText('It is remembered.').waitFor()
  const bike = page.getByRole('region', { name: 'The bike is' })
  await bike.getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('What is known').fill('The bike is <i>new</i>')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('It is changed.').waitFor()
  expect((await host.json('GET', '/api/memory/user/ann')).body.memories).toMatchObject([
    { content: 'The bike is <i>new</i>', tags: ['bike', 'old'], level: 'user', source: { labels: [] } },
  ])
  const tops = await page
    .locator('#search .field')
    .evaluateAll((all) => all.map((one) => [one.getBoundingClientRect().top, one.getBoundingClientRect().height]))
  expect(tops[0]).toEqual(tops[1])
  await page.getByLabel('Search').fill('boat')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByText('1 of 1.').waitFor()
  const card = page.getByRole('region', { name: '<b>The boat</b> is red' })
  await card.getByText('operator', { exact: true }).waitFor()
  await card.getByRole('button', { name: 'Forget' }).click()
  await dialog.getByRole('button', { name: 'Forget' }).click()
  await page.getByText('It is forgotten').waitFor()
  await page.getByText('Nothing is known about this.').waitFor()
  expect((await host.json('GET', '/api/memory')).body.total).toBe(2)
  expect(tab.complaints).toEqual([])
})

it('shows what is kept for a person, and forgets all of it', async () => {
  for (const content of ['Ben rows', 'Ben has a cold'])
    await host.json('POST', '/api/memory', { content, agent_id: 'scout', user_id: 'telegram:7' })
  await using tab = await openTab(browser, host.url, { path: '/pages/memory/memory/memory.html' })
  const { page } = tab
  await page.getByLabel('Person').selectOption('telegram:7')
  await page.getByText('2 of 2.').waitFor()
  await page.getByLabel('Search').fill('Who rows?')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByText('1 of 1.').waitFor()
  await page.getByLabel('Search').fill('')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByText('2 of 2.').waitFor()
  await page.getByRole('button', { name: 'Forget this person' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click()
  await page.getByText('2 memories are forgotten.').waitFor()
  expect((await host.json('GET', '/api/memory/user/telegram:7')).body.total).toBe(0)
  expect(tab.complaints).toEqual([])
})

it('shows below an answer which memories it was given, each with where it is known from', async () => {
  const manifest =
    'name = "mate"\n[model]\nprovider = "builtin"\nmodel = "offline"\n[proactive_memory]\nauto_retrieve = true'
  const { agent_id: mate } = (await host.json('POST', '/api/agents', { manifest_toml: manifest })).body
  for (const content of ['The <i>dog</i> is called Rex', 'The dog sleeps in the kitchen'])
    await host.json('POST', '/api/memory', { content, agent_id: mate })
  await using tab = await openTab(browser, host.url, { path: `/#${mate}` })
  const { page } = tab
  await tab.say('Hello there')
  await tab.say('What is the dog called and where does it sleep?')
  const used = page.getByText('used 2 memories')
  await used.click()
  await page.getByText('(told by "operator"').first().waitFor()
  // The same from the record.
  await page.reload()
  await used.click()
  expect(await page.getByText(/^used/).count()).toBe(1)
  const opened = page.context().waitForEvent('page')
  await page.getByRole('link', { name: 'The <i>dog</i> is called Rex' }).click()
  const dialog = (await opened).getByRole('dialog', { name: 'History' })
  await dialog.getByText('The <i>dog</i> is called Rex').waitFor()
  await dialog.getByText('known from operator').waitFor()
  expect(tab.complaints).toEqual([])
})

it('shows the message that a memory is known from', async () => {
  const { body } = await host.json('POST', '/api/agents', {
    manifest_toml:
      'name = "heard"\n[model]\nprovider = "builtin"\nmodel = "offline"\n[proactive_memory]\nauto_memorize = true',
  })
  const id = body.agent_id
  await host.json('POST', `/api/agents/${id}/message`, { message: 'Hello! I live in Lyon. What is the time?' })
  await expect
    .poll(async () => (await host.json('GET', `/api/memory/agents/${id}`)).body.memories)
    .toMatchObject([{ content: 'I live in Lyon.' }])
  await using tab = await openTab(browser, host.url, { path: '/pages/memory/memory/memory.html' })
  const { page } = tab
  await page.getByRole('region', { name: 'I live in Lyon.' }).getByRole('button', { name: 'Show the message' }).click()
  await page.getByRole('dialog').getByText('Hello! I live in Lyon. What is the time?').waitFor()
  expect(tab.complaints).toEqual([])
})
