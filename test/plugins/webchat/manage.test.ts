import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { accessibilityProblems } from './accessibility.ts'
import { builtPage, launchBrowser, openTab } from './browser.ts'

let browser: Browser
let host: TestHost
let id: string
beforeAll(async () => {
  browser = await launchBrowser()
  host = await startHost({
    config: { plugins: { watch: false, webchat: { page_dir: (await builtPage()).folder } } },
  })
  id = (
    await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "scout"\n# how it looks\n[capabilities]\ntools = ["*"]\n',
    })
  ).body.agent_id
  await host.json('POST', `/api/agents/${id}/message`, { message: 'echo <b>boats</b> & harbours' })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
})

/** Opens a page, does something there, and expects no complaint of the browser. */
async function on(path: string, work: (page: Page) => Promise<void>): Promise<void> {
  await using tab = await openTab(browser, host.url, { path: `/pages/${path}` })
  await work(tab.page)
  // What a form refuses is on purpose.
  expect(tab.complaints.filter((text) => !text.includes('status of 400'))).toEqual([])
}

describe('the page', () => {
  it('Agents: edits a manifest, says where a mistake is, duplicates, pauses and removes', async () => {
    await on('agents/agents/agents.html', async (page) => {
      const card = page.getByRole('region', { name: 'scout', exact: true })
      const dialog = page.getByRole('dialog')
      await card.getByRole('button', { name: 'Edit' }).click()
      // The manifest is asked for when the dialog opens: the form has its values then.
      await dialog.getByText('The manifest is right.').waitFor()
      expect(await dialog.getByLabel('Name', { exact: true }).inputValue()).toBe('scout')
      await dialog.getByLabel('Description').fill('Looks around')
      await dialog.getByLabel('Temperature').fill('7')
      await dialog.getByRole('status').getByText('model.temperature').waitFor()
      expect(await dialog.getByLabel('Temperature').getAttribute('aria-invalid')).toBe('true')
      await dialog.getByLabel('Temperature').fill('0.5')
      await dialog.getByText('The manifest is right.').waitFor()
      await dialog.getByText('Manifest (TOML)').click()
      const manifest = dialog.getByRole('textbox', { name: 'Manifest (TOML)' })
      const before = await manifest.inputValue()
      expect(before).toContain('# how it looks\n')
      await manifest.fill(`${before}\nwrong = [`)
      await dialog.getByRole('button', { name: /^Line \d+/ }).waitFor()
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByRole('alert').filter({ hasText: /./ }).waitFor()
      await manifest.fill(before.replace('tools = ["*"]', 'tools = ["kv_*"]'))
      const patterns = dialog.getByLabel('Patterns and other names')
      await expect.poll(() => patterns.inputValue()).toBe('kv_*')
      await patterns.fill('*')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await page.getByText('scout is saved.').waitFor()
      const { body: saved } = await host.json('GET', `/api/agents/${id}`)
      expect(saved).toMatchObject({ description: 'Looks around', model: { temperature: 0.5 } })
      expect(saved.manifest_toml).toContain('# how it looks\n[capabilities]\ntools = ["*"]\n')
      await card.getByRole('button', { name: 'Duplicate' }).click()
      await dialog.getByLabel('Name').fill('scout-two')
      await dialog.getByRole('button', { name: 'Duplicate' }).click()
      const copy = page.getByRole('region', { name: 'scout-two' })
      await copy.getByRole('button', { name: 'Pause' }).click()
      await copy.getByText('paused').waitFor()
      await copy.getByRole('button', { name: 'Remove' }).click()
      await dialog.getByRole('button', { name: 'Remove' }).click()
      await page.getByText('scout-two is removed.').waitFor()
      await card.getByRole('button', { name: 'Log' }).click()
      await dialog.getByText('agent_spawned').first().waitFor()
    })
  })

  it('Agents: a new one gets its model and its tools from lists, with the keyboard alone', async () => {
    await on('agents/agents/agents.html', async (page) => {
      const dialog = page.getByRole('dialog')
      const { keyboard } = page
      // As the form for a new agent in the chat leads here.
      await page.goto(`${host.url}/`)
      await page.getByRole('button', { name: 'New agent' }).press('Enter')
      await page.getByRole('link', { name: 'Choose its model and its tools' }).press('Enter')
      await dialog.getByText('The manifest is right.').waitFor()
      await dialog.getByText(/of [1-9]\d* tools allowed/).waitFor()
      await dialog.getByLabel('Name', { exact: true }).fill('keeper')

      const model = dialog.getByRole('combobox', { name: 'Model' })
      const models = dialog.getByRole('listbox', { name: 'Models' })
      await model.press('ArrowDown')
      expect(await model.getAttribute('aria-expanded')).toBe('true')
      const usual = models.getByRole('option', { name: /^default now builtin/ })
      expect(await model.getAttribute('aria-activedescendant')).toBe(await usual.getAttribute('id'))
      await keyboard.press('Escape')
      await models.waitFor({ state: 'hidden' })
      await model.fill('')
      await keyboard.type('offl')
      await models.getByRole('option', { name: /^builtin\/offline free/ }).waitFor()
      await keyboard.press('ArrowDown')
      await keyboard.press('Enter')
      expect(await model.inputValue()).toBe('offline')
      expect(await dialog.getByRole('combobox', { name: 'Provider' }).inputValue()).toBe('builtin')

      const box = (name: string) => dialog.getByRole('checkbox', { name, exact: true })
      expect([await box('memory_list').isChecked(), await box('memory_list').isDisabled()]).toEqual([true, true])
      await dialog.getByLabel('Search tools').fill('kv_')
      await expect.poll(() => dialog.getByRole('checkbox').count()).toBeLessThan(10)
      // It does not save.
      await keyboard.press('Enter')
      await box('kv_get').press('Space')
      await box('kv_set').press('Space')
      await box('kv_get').press('Space')
      await dialog.getByLabel('Patterns and other names').fill('event_*\nnot_there_yet')
      await dialog.getByLabel('Search tools').fill('memory_list')
      expect(await box('memory_list').isChecked()).toBe(false)
      await dialog.getByRole('button', { name: 'Make it' }).press('Enter')
      await page.getByText('keeper is there.').waitFor()
    })
    const made = (await host.json('GET', '/api/agents')).body.find(({ name }: { name: string }) => name === 'keeper')
    expect((await host.json('GET', `/api/agents/${made.id}`)).body).toMatchObject({
      model: { provider: 'builtin', model: 'offline' },
      capabilities: { tools: ['event_*', 'not_there_yet', 'system_time', 'kv_set'] },
    })
  })

  it('Agents: the form with its lists keeps WCAG 2.2 AA', async () => {
    const path = '/pages/agents/agents/agents.html'
    await using tab = await openTab(browser, host.url, { path, viewport: { width: 320, height: 700 } })
    const dialog = tab.page.getByRole('dialog')
    await tab.page.getByRole('button', { name: 'New agent' }).click()
    await dialog.getByText(/of [1-9]\d* tools allowed/).waitFor()
    await dialog.getByRole('combobox', { name: 'Model' }).press('ArrowDown')
    await dialog.getByRole('option').first().waitFor()
    expect(await accessibilityProblems(tab.page)).toEqual([])
  })

  it('Agents: a model that no list has can be typed', async () => {
    await on('agents/agents/agents.html', async (page) => {
      const dialog = page.getByRole('dialog')
      await page.getByRole('region', { name: 'keeper' }).getByRole('button', { name: 'Edit' }).click()
      await dialog.getByText('The manifest is right.').waitFor()
      await dialog.getByRole('combobox', { name: 'Provider' }).fill('openai')
      await dialog.getByRole('combobox', { name: 'Model' }).fill('gpt-of-tomorrow')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await page.getByText('keeper is saved.').waitFor()
      const card = page.getByRole('region', { name: 'keeper' })
      await card.getByText('openai/gpt-of-tomorrow').waitFor()
      await card.getByRole('button', { name: 'Remove' }).click()
      await dialog.getByRole('button', { name: 'Remove' }).click()
      await page.getByText('keeper is removed.').waitFor()
    })
  })

  it('Conversations: finds what was said, shown as text, and renames', async () => {
    await on('sessions/sessions/sessions.html', async (page) => {
      await page.getByLabel('Search in all messages').fill('boats')
      await page.getByRole('button', { name: 'Search' }).click()
      await page.getByRole('cell', { name: '<b>boats</b>' }).first().waitFor()
      // What is looked for is in the address.
      await page.reload()
      await page.getByRole('cell', { name: '<b>boats</b>' }).first().waitFor()
      await page
        .getByRole('button', { name: /^Rename/ })
        .first()
        .click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Title').fill('Harbours')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('cell', { name: 'Harbours', exact: true }).first().waitFor()
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Export: Harbours' }).click(),
      ])
      expect(download.suggestedFilename()).toBe('Harbours.md')
    })
  })

  it('Approvals: shows exactly what is asked, and the agent reads why it was rejected', async () => {
    const request = {
      agent_id: id,
      action: 'deploy',
      description: 'to production',
      payload: { target: '<i>prod</i>\u202e' },
    }
    const { body: opened } = await host.json('POST', '/api/approvals', request)
    await on('approvals/approvals/approvals.html', async (page) => {
      const card = page.getByRole('region', { name: /scout wants to/ })
      await card.getByText('Details').click()
      await card.getByText(String.raw`"target": "<i>prod</i>\u{202e}"`).waitFor()
      await card.getByRole('button', { name: /^Reject/ }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Reason').fill('not on a Friday')
      await dialog.getByRole('button', { name: 'Reject' }).click()
      await page.getByRole('cell', { name: 'rejected: not on a Friday' }).waitFor()
    })
    const { body } = await host.json('GET', `/api/approvals/${opened.id}`)
    expect(body).toMatchObject({ status: 'rejected', reason: 'not on a Friday' })
  })

  it('Models: says that the offline model answers, and tests it', async () => {
    await on('providers/models/models.html', async (page) => {
      await page.getByText('builtin/offline').first().waitFor()
      await page.getByRole('region', { name: 'Default model' }).getByRole('button', { name: 'Test' }).click()
      await page.getByText('builtin/offline answers').waitFor()
      await page.getByLabel('Only what can be used now').uncheck()
      await page.getByLabel('Search models').fill('claude')
      await page
        .getByRole('cell', { name: /anthropic\/claude/ })
        .first()
        .waitFor()
    })
  })

  it('Usage: counts what was used, by model and by agent', async () => {
    await on('usage/usage/usage.html', async (page) => {
      await page.getByRole('cell', { name: 'builtin/offline' }).waitFor()
      await page.getByRole('cell', { name: 'scout' }).waitFor()
      const chart = page.getByRole('figure').first()
      await page.getByLabel('Show').selectOption('30')
      await expect.poll(() => chart.getByRole('listitem').count()).toBe(30)
      await page.getByLabel('Show').selectOption('90')
      await chart.getByText('Tokens per week').waitFor()
      expect(await chart.getByRole('listitem').count()).toBe(13)
    })
  })

  it('Budgets: sets a limit, and refuses one that is none', async () => {
    await on('budgets/budgets/budgets.html', async (page) => {
      await page.getByRole('button', { name: 'Limits of scout' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('A day, in USD').fill('-1')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByRole('alert').filter({ hasText: 'must not be negative' }).waitFor()
      await dialog.getByLabel('A day, in USD').fill('2.5')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await page.getByText('The limits of scout are saved.').waitFor()
    })
    expect((await host.json('GET', `/api/budget/agents/${id}`)).body).toMatchObject({ daily: { limit: 2.5 } })
  })

  it('Audit trail: filters, verifies, and shows the proof of an entry', async () => {
    await on('audit/audit/audit.html', async (page) => {
      await page.getByLabel('Event').fill('agent_spawned')
      await page.getByRole('button', { name: 'Show' }).click()
      await page
        .getByRole('cell', { name: /scout.*spawned/ })
        .first()
        .waitFor()
      // A page that is read again and looks the same keeps what is being pressed.
      const entries = page.locator('#entries > *').first()
      const drawn = await entries.elementHandle()
      const answered = page.waitForResponse(/audit\/recent/)
      await page.getByRole('button', { name: 'Show' }).click()
      await (await answered).finished()
      await page.getByRole('button', { name: 'Verify' }).click()
      await page.getByText('entries are as they were written').waitFor()
      expect(await drawn?.evaluate((node) => node.isConnected)).toBe(true)
    })
  })

  it('Security: lists the sixteen systems with what was tried', async () => {
    await on('security/security/security.html', async (page) => {
      await page.getByText('All 16 systems refuse what they should').waitFor()
      expect(await page.getByText('active', { exact: true }).count()).toBe(16)
    })
  })

  it('Webhooks: makes one, names a mistake, and removes it', async () => {
    await on('webhooks/webhooks/webhooks.html', async (page) => {
      const asked: string[] = []
      page.on('request', (request) => asked.push(request.url()))
      await page.getByRole('button', { name: 'New webhook' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name', { exact: true }).fill('Ops')
      await dialog.getByLabel('Address').fill('https://ops.example.org/svc')
      await dialog.getByLabel('Events').fill('no_such_event')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByRole('alert').filter({ hasText: 'must be one of' }).waitFor()
      await dialog.getByLabel('Events').fill('agent_spawned')
      await dialog.getByRole('button', { name: 'Save' }).click()
      const card = page.getByRole('region', { name: 'Ops' })
      await card.getByText('no: the receiver cannot tell who sent it').waitFor()
      // A list of a hundred is one request.
      expect(asked.filter((url) => url.includes('/deliveries'))).toEqual([])
      await card.getByRole('button', { name: 'Remove' }).click()
      await dialog.getByRole('button', { name: 'Remove' }).click()
      await page.getByText('None yet.').waitFor()
    })
  })

  it('Logs: follows the log, and narrows it', async () => {
    await on('system/logs/logs.html', async (page) => {
      await page.getByText('Live', { exact: true }).waitFor()
      await page.getByLabel('Level').selectOption('debug')
      await page.getByLabel('Text').fill('"kv" reloaded')
      expect((await host.json('POST', '/api/plugins/kv/reload')).status).toBe(200)
      const lines = page.getByRole('list', { name: 'Lines of the log' }).getByRole('listitem')
      await expect.poll(() => lines.allInnerTexts()).toEqual([expect.stringContaining('plugin "kv" reloaded')])
    })
  })

  it('Backups: makes one and deletes it', async () => {
    await on('backups/backups/backups.html', async (page) => {
      await page.getByRole('button', { name: 'Make a backup' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('button', { name: 'Make it' }).click()
      await page.getByText(/svc_backup_.*is made/).waitFor()
      await page.getByRole('button', { name: /^Delete/ }).click()
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await page.getByText('There is no backup yet.').waitFor()
    })
  })

  it('Settings: changes a setting, and says what is in the file only', async () => {
    await on('settings/settings/settings.html', async (page) => {
      await page.getByLabel('Search settings').fill('webhooks.max_attempts')
      await page.getByRole('button', { name: 'Change plugins.webhooks.max_attempts' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Value').fill('0')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByRole('alert').filter({ hasText: /./ }).waitFor()
      await dialog.getByLabel('Value').fill('7')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Saved. It holds now.').waitFor()
      await page.getByLabel('Search settings').fill('audit.retention_days')
      await page.getByText('Only in config.toml, because it says how long').waitFor()
      // What is looked at is in the address.
      await page.goto(page.url().replace('retention_days', 'anchor'))
      expect(await page.getByLabel('Search settings').inputValue()).toBe('audit.anchor')
    })
    expect((await host.json('GET', '/api/config')).body.config.plugins.webhooks.max_attempts).toBe(7)
  })
})
