import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'

const KEY = 'page-key-0123456789'
const asOwner = { authorization: `Bearer ${KEY}` }
const path = '/pages/pairing/devices/devices.html'
let browser: Browser
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    memory: true,
    config: { api_key: KEY, pairing: { enabled: true }, plugins: { watch: false } },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})
const pair = async (code: string, name: string): Promise<string> => {
  const body = { pairing_code: code, display_name: name, platform: 'android' }
  const made = await host.json('POST', '/api/pairing/complete', body)
  expect(made.status).toBe(200)
  return made.body.api_key
}

it('shows devices, gives a code for another, and removes one with what it made', async () => {
  const { body: first } = await host.json('POST', '/api/pairing/request', undefined, asOwner)
  await pair(first.pairing_code, 'Tablet <b>')
  await using tab = await openTab(browser, host.url, { path })
  const { page } = tab
  await page.getByLabel('API key').fill(KEY)
  await page.getByRole('button', { name: 'Show the devices' }).click()
  const card = (name: string) => page.getByRole('region', { name, exact: true })
  await card('Tablet <b>').getByText('android').waitFor()
  await page.getByText('One device is paired.').waitFor()

  await page.getByRole('button', { name: 'Pair a device' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/Enter it on the device before \d{1,2}:\d\d/).waitFor()
  const code = (await dialog.locator('.code').textContent()) ?? ''
  const key = await pair(code, 'Phone')
  await page.keyboard.press('Escape')
  await card('Phone').waitFor()

  const { body: paired } = await host.json('GET', '/api/pairing/devices', undefined, asOwner)
  const { device_id: device } = paired.devices.find(
    ({ display_name: name }: { display_name: string }) => name === 'Phone',
  )
  await using own = await openTab(browser, host.url, {
    path,
    before: async (opened) => {
      await opened.addInitScript(
        (text) => localStorage.setItem('svc.remembered', text),
        JSON.stringify({ key, device }),
      )
    },
  })
  await own.page.getByRole('region', { name: 'Phone' }).getByText('this browser').waitFor()
  expect(await own.page.getByText('this browser').count()).toBe(1)

  const asDevice = { authorization: `Bearer ${key}` }
  const manifest_toml = 'name = "asks"\n[capabilities]\ntools = ["schedule_create"]\n[metadata]\napproval = "never"\n'
  const { body: agent } = await host.json('POST', '/api/agents', { manifest_toml }, asOwner)
  const message = 'use schedule_create {"description": "look at the tides", "schedule": "daily at 9"}'
  const said = await host.json('POST', `/api/agents/${agent.agent_id}/message`, { message }, asDevice)
  expect(said.status).toBe(200)
  await card('Phone').getByRole('button', { name: 'Remove' }).click()
  await dialog.getByLabel('End what it made as well').check()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText(/“Phone” is removed. Ended: schedule .+[.]/).waitFor()
  await card('Phone').waitFor({ state: 'detached' })
  expect((await host.json('GET', '/api/pairing/devices', undefined, asDevice)).status).toBe(401)
  // Before the key was entered.
  expect(tab.complaints).toEqual([expect.stringContaining('status of 401')])
})

it('says how to switch pairing on where it is off', async () => {
  await using off = await startHost({ memory: true, config: { plugins: { watch: false } } })
  await using tab = await openTab(browser, off.url, { path })
  await tab.page.getByText('write enabled = true under [pairing]').waitFor()
  expect(await tab.page.getByRole('alert').filter({ hasText: /./ }).count()).toBe(0)
})
