import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { logIn, startProtectedServer } from '../../support/oauth-mcp.ts'
import type { ProtectedServer } from '../../support/oauth-mcp.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'

const program = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/server-memory/dist/index.js', import.meta.url),
)
const template = `
id = "graph"
name = "Graph <b>of</b> facts"
description = "Remembers facts"
category = "reference"
[transport]
type = "stdio"
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(program)}]
env = { MEMORY_FILE_PATH = "{SERVER_FOLDER}/graph.jsonl" }
[[required_env]]
name = "GRAPH_KEY"
label = "Key of the graph"
get_url = "https://example.org/keys"
`
/** A vendor with a login, and with a token for whoever has one. */
const vendor = (id: string, url: string, client: string): string => `
id = "${id}"
name = "${id}"
description = "A vendor with a login"
category = "reference"
[transport]
type = "http"
url = "${url}"
headers = { authorization = "Bearer {VENDOR_TOKEN}" }
[[required_env]]
name = "VENDOR_TOKEN"
label = "Token"
[[required_env]]
name = "VENDOR_CLIENT_ID"
label = "Client"
is_secret = false
optional = true
[oauth]
provider = "${id}"
${client}
`
let browser: Browser
let remote: ProtectedServer
let home: string
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  home = await mkdtemp(join(tmpdir(), 'svc-integrations-'))
  await mkdir(join(home, 'integrations'))
  await writeFile(join(home, 'integrations', 'graph.toml'), template)
  await writeFile(join(home, 'integrations', 'wrong.toml'), 'id = 3')
  remote = await startProtectedServer()
  await writeFile(join(home, 'integrations', 'vendor.toml'), vendor('vendor', remote.url, ''))
  const client = 'client = { id = "VENDOR_CLIENT_ID" }'
  await writeFile(join(home, 'integrations', 'strict.toml'), vendor('strict', remote.url, client))
  host = await startHost({
    home,
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'mcp', 'integrations'],
    config: {
      outbound: { allow: ['127.0.0.1'] },
      plugins: { watch: false, integrations: { trusted: ['graph', 'second-graph'] } },
    },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await remote?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['integration', ...args, '--home', home])

it('the commands list, search, add, show, switch off and on, reconnect and remove', async () => {
  expect((await svc('list')).stdout).toContain('There are no integrations.')
  const found = await svc('available', 'facts')
  expect(found.stdout).toMatch(/\ngraph +reference +available +values +Remembers facts\n$/)
  expect(found.stderr).toContain('wrong.toml: id: ')
  const added = await svc('add', 'graph', '--fields', '{"GRAPH_KEY": "key-4711"}')
  expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/is added as graph\. Agents can use \d+ tools/)])
  expect((await svc('list')).stdout).toMatch(/\ngraph +Graph <b>of<\/b> facts +ready +\d+ *\n$/)
  const shown = (await svc('show', 'graph')).stdout
  expect(shown).toMatch(/state +ready\n/)
  expect(shown).toMatch(/\nmcp_graph_create_entities +/)
  expect((await svc('reconnect', 'graph')).stdout).toMatch(/^graph is connected and has \d+ tools\.\n$/)
  expect((await svc('disable', 'graph')).stdout).toMatch(/^graph is off\./)
  expect(await svc('reconnect', 'graph')).toMatchObject({ code: 1, stderr: expect.stringContaining('is disabled') })
  expect((await svc('list')).stdout).toMatch(/ disabled +0 *\n$/)
  expect((await svc('enable', 'graph')).stdout).toBe('graph is on again.\n')
  expect((await svc('list')).stdout).toMatch(/ ready +\d+ *\n$/)
  expect((await svc('disable', 'nothing')).code).toBe(4)
  expect((await svc('remove', 'graph')).stdout).toBe('graph is removed with its secrets.\n')
  expect(await svc('show', 'graph')).toMatchObject({ code: 4, stderr: expect.stringContaining('was not added') })
  expect(await svc('add', 'grap')).toMatchObject({ code: 4, stderr: expect.stringContaining('did you mean "graph"?') })
  expect((await svc('add', 'postgresql', '--fields', '[]')).stderr).toContain('--fields is no JSON object')
})

it('the page searches the catalogue, adds with a secret, shows the state, reconnects, switches off and removes', async () => {
  await using tab = await openTab(browser, host.url, { path: '/pages/integrations/integrations/integrations.html' })
  const { page } = tab
  await page.getByText('wrong.toml: id: ').waitFor()
  await page.getByRole('searchbox').fill('facts')
  await page.getByText(/^1 of 3\d$/).waitFor()
  const name = 'Graph <b>of</b> facts'
  await page.getByRole('button', { name: `Add: ${name}` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.getByText(/GRAPH_KEY: graph needs it: Key of the graph/).waitFor()
  expect(await dialog.getByRole('link', { name: 'Get it' }).getAttribute('href')).toBe('https://example.org/keys')
  await dialog.getByLabel('Name').fill('Second graph')
  await dialog.getByLabel('Key of the graph').fill('key-4711')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await page.getByText(/^second-graph is added\. Agents can use \d+ tools of it\.$/).waitFor()
  const card = page.getByRole('region', { name: 'Second graph' })
  await card.getByText('ready').waitFor()
  await card.getByRole('button', { name: 'Reconnect: Second graph' }).click()
  await page.getByText('Second graph is connected.').waitFor()
  await card.getByRole('button', { name: 'Switch off: Second graph' }).click()
  await card.getByText('disabled').waitFor()
  await card.getByRole('button', { name: 'Switch on: Second graph' }).click()
  await card.getByText('ready').waitFor()
  await card.getByRole('button', { name: 'Remove: Second graph' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('Nothing was added yet.').waitFor()
  expect(await page.content()).not.toContain('key-4711')
  // The answer to the form without the key.
  expect(tab.complaints.filter((one) => !one.includes('400'))).toEqual([])
})

it('one with a login waits in the state setup, and works when somebody signed in on the page', async () => {
  expect((await svc('add', 'graph', '--login')).stderr).toContain('graph has no login')
  const tried = await runHere(['mcp', 'test', 'other', '--address', remote.url, '--home', home])
  expect(tried.stderr).toContain('the MCP server "other" wants a login: add it, then log in')
  const input = vi.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from([]) as typeof process.stdin)
  expect(await svc('add', 'strict', '--login')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('VENDOR_CLIENT_ID is required: Client'),
  })
  input.mockRestore()
  expect((await svc('add', 'vendor', '--login')).stdout).toMatch(
    /is added as vendor\. Sign in to use it: .* mcp login vendor`?\.\n$/,
  )
  expect((await svc('list')).stdout).toMatch(/\nvendor +vendor +setup +0 +sign in first: .* mcp login vendor`?\n$/)
  expect((await svc('reconnect', 'vendor')).stdout).toContain('mcp login vendor')

  await using tab = await openTab(browser, host.url, { path: '/pages/integrations/integrations/integrations.html' })
  const card = tab.page.locator('[data-integration=vendor]')
  await card.getByText('setup').waitFor()
  await card.getByRole('button', { name: 'Sign in: vendor' }).click()
  const link = tab.page.getByRole('dialog').getByRole('link')
  const back = await logIn((await link.getAttribute('href')) ?? '', ({ origin }) => origin === host.url)
  expect((await fetch(back)).status).toBe(200)
  // The dialog closes by itself.
  await tab.page.getByText('You are signed in to vendor.').waitFor()
  await card.getByText('ready').waitFor()
  expect((await svc('show', 'vendor')).stdout).toMatch(/\nmcp_vendor_whoami +Says who calls\n/)
  expect((await svc('remove', 'vendor')).code).toBe(0)
  expect(tab.complaints).toEqual([])
})
