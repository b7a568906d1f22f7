import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
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
import { server } from './servers.ts'

const confined = fileURLToPath(new URL('../../fixtures/mcp/confined.pl', import.meta.url))
let browser: Browser
let home: string
let host: TestHost
beforeAll(async () => {
  browser = await launchBrowser()
  home = await mkdtemp(join(tmpdir(), 'svc-mcp-'))
  host = await startHost({
    home,
    plugins: [...turnPlugins, 'webchat', 'providers/builtin', 'system', 'approvals', 'mcp', 'mcp-server'],
    config: {
      plugins: { watch: false },
      mcp_servers: [server('file', ['--fault=stderr']), server('broken', ['--fault=exit'])],
    },
  })
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['mcp', ...args])

/** A program in the folder of its server, the only one that it can read. */
async function programOf(name: string): Promise<string> {
  await mkdir(join(home, 'mcp', name), { recursive: true })
  const script = join(home, 'mcp', name, 'server.pl')
  await copyFile(confined, script)
  return script
}

it('svc mcp adds, lists, shows, tries, restarts and removes servers, beside svc mcp serve', async () => {
  const at = ['--home', home]
  expect((await svc('restart', 'file', ...at)).stdout).toMatch(/^file is connected and has \d+ tools\.\n$/)
  const script = await programOf('own')
  const tried = await svc('test', 'own', ...at, '--command', 'perl', '--arg', script)
  expect([tried.code, tried.stdout]).toEqual([0, expect.stringMatching(/^It works, with revision .* and 4 tools\.\n/)])
  const added = await svc(
    'add',
    'own',
    '--network',
    'a.test',
    '--network=b.test',
    ...at,
    '--command',
    'perl',
    '--arg',
    script,
  )
  expect([added.code, added.stdout]).toEqual([0, 'own is added. Agents can use 4 tools of it.\n'])
  const list = (await svc('list', ...at)).stdout
  expect(list).toMatch(/\nown +connected +4 +api +perl /)
  expect(list).toMatch(/\nfile +connected +\d+ +file /)
  const shown = (await svc('show', 'own', ...at)).stdout
  expect(shown).toMatch(/runs +confined\n/)
  expect(shown).toMatch(/network +a\.test, b\.test\n/)
  expect(shown).toMatch(/\nmcp_own_look +execute +yes +look/)
  expect((await svc('logs', 'file', ...at)).stdout).toContain('eeee')
  expect((await svc('remove', 'own', ...at)).stdout).toBe('own is removed.\n')
  expect(JSON.parse((await svc('list', '--json', ...at)).stdout).total).toBe(2)
  // Both plugins add to one group of commands.
  expect((await svc('serve', '--help')).stdout).toContain('standard input and output')
})

it.each([
  [['show', 'nobody'], 4, 'There is no MCP server "nobody"'],
  [['remove', 'file'], 1, '[[mcp_servers]]'],
  [['logout', 'nobody'], 4, 'nobody'],
  [['login', 'file'], 1, 'login'],
  [['restart', 'broken'], 1, 'exit code 3. `svc mcp logs broken` says more\n'],
  [['test', 'x', '--command', 'perl', '--arg', '/usr/none.pl'], 1, '"/usr/none.pl": No such file or directory\n'],
  [['add', 'x'], 2, 'either a program or an address'],
  [['test', 'x'], 2, 'svc mcp restart x'],
  [['add', 'x', '--address', 'http://127.0.0.1:1/', '--command', 'true'], 2, 'either a program or an address'],
  [['add', 'x', '--command', 'sh', '--arg=-c', '--arg', 'exit 9'], 1, 'exit code 9'],
  [['add', 'Wrong Name', '--command', 'true'], 1, 'name'],
])('svc mcp %j ends with %i and says why', async ([command = '', ...words], code, reason) => {
  const answer = await svc(command, '--home', home, ...words)
  expect([answer.code, answer.stderr]).toEqual([code, expect.stringContaining(reason)])
  expect(answer.stderr).not.toContain('log of the daemon')
})

it('svc doctor warns of a server that failed, and says what to do', async () => {
  await svc('restart', 'broken', '--home', home)
  expect((await runHere(['doctor', '--home', home])).stdout).toMatch(
    /warn {2}mcp +broken: .*exit code 3.*\n +-> `svc mcp logs broken` says more; then `svc mcp restart broken`\n/,
  )
})

it('the page tries, adds, restarts and removes a server, and shows its tools and what changed of them', async () => {
  const script = await programOf('paged')
  await using tab = await openTab(browser, host.url, { path: '/pages/mcp/mcp/mcp.html' })
  const { page } = tab
  const dialog = page.getByRole('dialog')
  const file = page.getByRole('region', { name: 'file' })
  await file.getByText('the configuration file').waitFor()
  expect(await file.getByRole('button', { name: 'Remove' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Add a server' }).click()
  await dialog.getByLabel('Name', { exact: true }).fill('paged')
  await dialog.getByLabel('Program').fill('false')
  await dialog.getByRole('button', { name: 'Test' }).click()
  await dialog.getByText('it ended with exit code 1').waitFor()
  await dialog.getByLabel('Program').fill('perl')
  await dialog.getByLabel('Arguments').fill(script)
  await dialog.getByRole('button', { name: 'Test' }).click()
  await dialog.getByText('It works: env, look, reach, connect').waitFor()
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByText('paged is added with 4 tools.').waitFor()
  const card = page.getByRole('region', { name: 'paged' })
  await card.getByText('4 tools').click()
  await card.getByText('mcp_paged_look').waitFor()
  await card.getByRole('button', { name: 'Restart: paged' }).click()
  await page.getByText('paged is connected and has 4 tools.').waitFor()
  // It says something else of its tools now.
  await writeFile(script, (await readFile(script, 'utf8')).replace('"description":"$_"', '"description":"$_ and more"'))
  await card.getByRole('button', { name: 'Restart: paged' }).click()
  await card.getByText('look: description').waitFor()
  await card.getByText('look and more').first().waitFor()
  await card.getByRole('button', { name: 'Approve the change: paged' }).click()
  await page.getByText('The tools of paged are approved as they are now.').waitFor()
  await card.getByText('look: description').waitFor({ state: 'detached' })
  await card.getByRole('button', { name: 'Remove: paged' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('paged is removed.').waitFor()
  // The answer to the program that ended.
  expect(tab.complaints.filter((one) => !one.includes('502'))).toEqual([])
})
