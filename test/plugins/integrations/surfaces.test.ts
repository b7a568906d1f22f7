import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
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
let browser: Browser
let home: string
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  home = await mkdtemp(join(tmpdir(), 'svc-integrations-'))
  await mkdir(join(home, 'integrations'))
  await writeFile(join(home, 'integrations', 'graph.toml'), template)
  await writeFile(join(home, 'integrations', 'wrong.toml'), 'id = 3')
  host = await startHost({
    home,
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'mcp', 'integrations'],
    config: { plugins: { watch: false, integrations: { trusted: ['graph', 'second-graph'] } } },
  })
}, 30_000)
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['integration', ...args, '--home', home])

it('the commands list, search, add, show, reconnect and remove', async () => {
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
  expect((await svc('remove', 'graph')).stdout).toBe('graph is removed with its secrets.\n')
  expect(await svc('show', 'graph')).toMatchObject({ code: 4, stderr: expect.stringContaining('was not added') })
  expect(await svc('add', 'grap')).toMatchObject({ code: 4, stderr: expect.stringContaining('did you mean "graph"?') })
  expect((await svc('add', 'postgresql', '--fields', '[]')).stderr).toContain('--fields is no JSON object')
})

it('the page searches the catalogue, adds with a secret, shows the state, reconnects and removes', async () => {
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
  await card.getByRole('button', { name: 'Remove: Second graph' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('Nothing was added yet.').waitFor()
  expect(await page.content()).not.toContain('key-4711')
  // The answer to the form without the key.
  expect(tab.complaints.filter((one) => !one.includes('400'))).toEqual([])
})
