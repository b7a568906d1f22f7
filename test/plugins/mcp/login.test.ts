import { generateKeyPairSync } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { fakeDefaults, FakeModel, installModel } from '../../../core/testing/fake-model.ts'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { logIn, startProtectedServer } from '../../support/oauth-mcp.ts'
import type { ProtectedServer } from '../../support/oauth-mcp.ts'
import { turnPlugins } from '../plugin-test.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'

const CALLBACK = '/api/mcp/oauth/callback'
const model = new FakeModel()
let remote: ProtectedServer
let browser: Browser
let home: string
let forgetModel: () => void
let host: TestHost
let agent: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-mcp-login-'))
  forgetModel = await installModel(model, join(home, 'plugins'))
  // Its tokens count as ending at once: every connection renews them.
  ;[browser, remote] = await Promise.all([launchBrowser(), startProtectedServer({ tokenSecs: 20 })])
  host = await startHost({
    home,
    plugins: [...turnPlugins, 'webchat', 'system', 'mcp'],
    config: { ...fakeDefaults, outbound: { allow: ['127.0.0.1'] } },
  })
  const manifest_toml = 'name = "clerk"\n[capabilities]\ntools = ["*"]\n'
  agent = (await host.json('POST', '/api/agents', { manifest_toml })).body.agent_id
})
afterAll(async () => {
  await browser?.close()
  await host?.[Symbol.asyncDispose]()
  await remote?.[Symbol.asyncDispose]()
  forgetModel?.()
  await rm(home, { recursive: true, force: true })
})

const call = (method: string, path: string, body?: unknown) => host.json(method, `/api/mcp/servers${path}`, body)
const svc = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  runHere(['mcp', ...args, '--home', home], env)
/** What the agent answers in a turn whose model calls the tool: its result. */
async function whoami(server: string): Promise<string> {
  model.answer({ calls: [{ tool: `mcp_${server}_whoami`, args: {} }] })
  return (await host.json('POST', `/api/agents/${agent}/message`, { message: 'Who am I there?' })).body.response
}
/** What a browser does: from the authorization server back to the daemon. */
async function followLogin(address: string): Promise<Response> {
  const back = await logIn(address, ({ origin, pathname }) => origin === host.url && pathname === CALLBACK)
  return await fetch(back)
}

it('an agent calls a tool after a login over the API, and still when the token has ended', async () => {
  const added = await call('POST', '', { name: 'docs', url: remote.url })
  expect([added.status, added.body.state]).toEqual([201, 'login_required'])
  expect(await whoami('docs')).toContain('There is no tool')
  const { body: begun } = await call('POST', '/docs/login')
  expect(begun).toMatchObject({ status: 'pending', expires_at: expect.any(String) })
  const page = await followLogin(begun.authorization_url)
  expect([page.status, await page.text()]).toEqual([200, 'Logged in at docs. You can close this page.\n'])
  expect(await call('GET', '/docs')).toMatchObject({ body: { state: 'connected' } })
  const before = remote.grants.length
  expect(await whoami('docs')).toBe('ada')
  expect(new Set(remote.grants.slice(before))).toEqual(new Set(['refresh_token']))
  expect(remote.grants.filter((grant) => grant === 'authorization_code')).toHaveLength(1)
  // The same answer of the authorization server counts once.
  const state = new URL(begun.authorization_url).searchParams.get('state')
  const { status, body } = await host.json('GET', `${CALLBACK}?state=${state}&code=x`)
  expect([status, body.error.message]).toEqual([403, expect.stringContaining('begin it again')])
  expect(host.log.join('\n')).not.toContain(String(state))
})

it('the page begins a login, and says when it is done on the page of the authorization server', async () => {
  expect(await call('POST', '/docs/logout')).toMatchObject({ body: { logged_out: true } })
  await using tab = await openTab(browser, host.url, { path: '/pages/mcp/mcp/mcp.html' })
  const { page } = tab
  await page.getByRole('region', { name: 'docs' }).getByRole('button', { name: 'Log in: docs' }).click()
  const opened = page.context().waitForEvent('page')
  await page.getByRole('link', { name: 'Open the login of docs' }).click()
  const other = await opened
  await other.getByText('Logged in at docs. You can close this page.').waitFor()
  await page.getByText('You are logged in at docs.').waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await whoami('docs')).toBe('ada')
  // The plugin for approvals is not there.
  expect(tab.complaints.filter((one) => !one.includes('404'))).toEqual([])
})

it('svc mcp login opens a browser and waits until the login is done', async () => {
  expect((await svc(['logout', 'docs'])).stdout).toBe('Logged out of docs.\n')
  const [program, opened] = [join(home, 'browser'), join(home, 'opened')]
  await writeFile(program, `#!/bin/sh\necho "$1" > ${opened}.part && mv ${opened}.part ${opened}\n`)
  await chmod(program, 0o755)
  const ended = svc(['login', 'docs', '--open'], { BROWSER: program })
  const address = await eventually(() => readFile(opened, 'utf8'))
  expect((await followLogin(address.trim())).status).toBe(200)
  const { code, stdout } = await ended
  expect([code, stdout]).toEqual([0, `The login is open in a browser:\n${address}Logged in at docs.\n`])
  expect(await whoami('docs')).toBe('ada')
})

it.each(['', '/bin/false', '/nothing/here'])(
  'svc mcp login prints the address where %j is the browser',
  async (none) => {
    const env = { BROWSER: none, DISPLAY: '', WAYLAND_DISPLAY: '' }
    const { code, stdout } = await svc(['login', 'docs', '--open', '--no-wait'], env)
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Open this address in a browser:\nhttp:\S+\n$/)])
  },
)

it('svc mcp add takes a client of the vendor, which logs in by itself', async () => {
  const secret = Readable.from(['the-secret-of-the-robot\n']) as typeof process.stdin
  const input = vi.spyOn(process, 'stdin', 'get').mockReturnValue(secret)
  const client = ['--client-id', 'robot', '--client-secret', '--scope', 'mcp', '--grant', 'client_credentials']
  const added = await svc(['add', 'robot', '--address', remote.url, ...client])
  input.mockRestore()
  expect([added.code, added.stdout]).toEqual([0, 'robot is added. Agents can use 1 tools of it.\n'])
  expect(await whoami('robot')).toBe('ada')
})

const encoded = {
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
} as const
const ofBits = (modulusLength: number): string =>
  generateKeyPairSync('rsa', { modulusLength, ...encoded }).privateKey.toString()
const onCurve = (namedCurve: string): string =>
  generateKeyPairSync('ec', { namedCurve, ...encoded }).privateKey.toString()
it.each([
  ['another grant', { grant: 'password' }, /oauth\.grant/],
  ['a scope with a space', { scopes: ['mcp', 'a b'] }, /oauth\.scopes\.1: .*one scope/],
  ['a secret of nobody', { client_secret: 'x' }, /oauth: .*a client_id with/],
  ['a secret and a key', { client_id: 'x', client_secret: 'y', private_key: onCurve('P-256') }, /oauth: .*not both/],
  ['a key of another curve', { client_id: 'x', private_key: onCurve('secp256k1') }, /oauth\.private_key: .*P-521/],
  ['a short key', { client_id: 'x', private_key: ofBits(1024) }, /oauth\.private_key: .*2048 bits/],
  ['an unknown field', { clientId: 'x' }, /clientId/],
])('a client with %s is refused with where and what', async (_, oauth, message) => {
  const { status, body } = await call('POST', '', { name: 'wrong', url: remote.url, oauth })
  expect([status, body.error.message]).toEqual([400, expect.stringMatching(message)])
  expect((await call('GET', '/wrong')).status).toBe(404)
})

it('a login belongs to a server with a url that has no key of its own', async () => {
  const oauth = { client_id: 'x' }
  const program = await call('POST', '', { name: 'wrong', command: 'true', oauth })
  expect([program.status, program.body.error.message]).toEqual([400, expect.stringMatching(/^oauth: a stdio server/)])
  const headers = { authorization: 'Bearer 1' }
  const both = await call('POST', '', { name: 'wrong', url: remote.url, headers, oauth })
  expect([both.status, both.body.error.message]).toEqual([400, expect.stringMatching(/^oauth: the header/)])
  const { code, stderr } = await svc(['add', 'wrong', '--address', remote.url, '--private-key', '/nothing/here'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('--private-key: ENOENT')])
})
