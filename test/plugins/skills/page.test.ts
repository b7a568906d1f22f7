import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startClawHub } from '../../support/fake-clawhub.ts'
import type { FakeClawHub } from '../../support/fake-clawhub.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'
import { skillText, writeSkill } from './stage.ts'

let browser: Browser
let host: TestHost
let hub: FakeClawHub
beforeAll(async () => {
  browser = await launchBrowser()
  hub = await startClawHub()
  host = await startHost({
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'skills'],
    memory: true,
    config: {
      outbound: { allow: ['127.0.0.1'] },
      plugins: { watch: false, skills: { clawhub_url: hub.origin } },
    },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await hub?.[Symbol.asyncDispose]()
})

it('shows skills and what is wrong with others, installs after a look, and uninstalls', async () => {
  await writeSkill(host, 'broken', { 'SKILL.md': '---\nname: broken\n---\n' })
  const source = join(host.home, 'tides')
  await mkdir(source)
  await writeFile(join(source, 'SKILL.md'), skillText('tides', 'Knows <b>tides</b>.', 'The moon, never sudo.'))
  await using tab = await openTab(browser, host.url, { path: '/pages/skills/skills/skills.html' })
  const { page } = tab
  await page.getByRole('region', { name: 'broken', exact: true }).getByText('description: is missing').waitFor()
  await page.getByRole('button', { name: 'Install a skill' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Folder, archive').fill('/none')
  await dialog.getByRole('button', { name: 'Look at it' }).click()
  await dialog.getByRole('alert').getByText('does not exist').waitFor()
  await dialog.getByLabel('Folder, archive').fill(source)
  await dialog.getByRole('button', { name: 'Look at it' }).click()
  await dialog.getByText('dangerous command: "sudo"').waitFor()
  await dialog.getByRole('button', { name: 'Install', exact: true }).click()
  await page.getByText('“tides” 0.1.0 is installed.').waitFor()
  const card = page.getByRole('region', { name: 'tides', exact: true })
  await card.getByText('Knows <b>tides</b>.').waitFor()
  await card.getByRole('button', { name: 'Show' }).click()
  await dialog.getByText('The moon, never sudo.').waitFor()
  await dialog.getByRole('button', { name: 'Close' }).first().click()
  await card.getByRole('button', { name: 'Uninstall' }).click()
  await dialog.getByRole('button', { name: 'Uninstall' }).click()
  await page.getByText('“tides” is uninstalled.').waitFor()
  expect((await host.json('GET', '/api/skills/tides')).status).toBe(404)
  // That of the source that does not exist, and of the skill that is gone is asked beside the page.
  expect(tab.complaints).toEqual([expect.stringContaining('status of 404')])
})

it('finds a skill of the hub, and installs it after a look', async () => {
  const files = { 'SKILL.md': skillText('gif', 'Finds <i>GIFs</i>.') }
  hub.skills.push({ slug: 'gif', displayName: '<b>Gif</b>', summary: 'Finds GIFs', files })
  await using tab = await openTab(browser, host.url, { path: '/pages/skills/skills/skills.html' })
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: 'Search ClawHub' }).click()
  await dialog.getByLabel('What it is for').fill('GIFs')
  await dialog.getByRole('button', { name: 'Search' }).click()
  await dialog.getByLabel('Skills').selectOption({ label: '<b>Gif</b> 1.0.0: Finds GIFs' })
  await dialog.getByRole('button', { name: 'Look at it' }).click()
  await dialog.getByText('Finds <i>GIFs</i>.').waitFor()
  await dialog.getByRole('button', { name: 'Install', exact: true }).click()
  await page.getByText('“gif” 1.0.0 is installed.').waitFor()
  expect(tab.complaints).toEqual([])
})
