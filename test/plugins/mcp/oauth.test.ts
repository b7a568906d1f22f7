import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import type { Vault } from '../../../core/storage/vault.ts'
import { OAuthLogins } from '../../../plugins/mcp/oauth/logins.ts'
import { CALLBACK_PATH } from '../../../plugins/mcp/oauth/paths.ts'
import { OAuthRecords } from '../../../plugins/mcp/oauth/record.ts'
import type { ServerConfig } from '../../../plugins/mcp/servers/spec.ts'
import { logIn, startProtectedServer } from '../../support/oauth-mcp.ts'
import type { ProtectedServer } from '../../support/oauth-mcp.ts'

const ORIGIN = 'http://127.0.0.1:4545'
function memoryVault(): Vault & { readonly held: Map<string, string> } {
  const held = new Map<string, string>()
  return {
    held,
    read: async (name) => held.get(name),
    write: async (name, secret) => void held.set(name, secret),
    remove: async (name) => held.delete(name),
    names: async () => [...held.keys()],
  }
}

let remote: ProtectedServer
let vault: ReturnType<typeof memoryVault>
let ahead = 0
/** How far the clock is set ahead between the handshake and the calls. */
let later = 0
let changed: string[]
let warnings: string[]
beforeEach(async () => {
  remote = await startProtectedServer()
  vault = memoryVault()
  ahead = 0
  later = 0
  changed = []
  warnings = []
})
afterEach(() => remote[Symbol.asyncDispose]())

function start(oauth?: ServerConfig['oauth'], fetchOf: typeof fetch = fetch) {
  const server = { name: 'files', url: remote.url, transport: 'http', oauth } as unknown as ServerConfig
  const logins = new OAuthLogins({
    records: new OAuthRecords(vault),
    find: (name) => (name === 'files' ? server : undefined),
    fetchOf: () => fetchOf,
    origin: () => ORIGIN,
    isPublic: () => false,
    now: () => Date.now() + ahead,
    log: { warn: (message: string) => void warnings.push(message) },
    changed: async (name) => void changed.push(name),
  })
  const call = async (times = 1): Promise<unknown> => {
    const client = new Client({ name: 'svc', version: '1.0.0' })
    const provider = logins.provider(server, fetch)
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(remote.url), { authProvider: provider }))
      ahead += later
      const answers = await Promise.all(Array.from({ length: times }, () => client.callTool({ name: 'whoami' })))
      return answers.at(-1)?.content
    } finally {
      await client.close()
    }
  }
  return { logins, call }
}
const answered = [{ type: 'text', text: 'ada' }]
async function comeBack(url: string): Promise<Record<string, string>> {
  const back = await logIn(url, ({ origin, pathname }) => origin === ORIGIN && pathname === CALLBACK_PATH)
  return Object.fromEntries(back.searchParams)
}
const recordKey = (): string => [...vault.held.keys()].find((key) => key.startsWith('oauth:files:')) ?? ''
const record = () => JSON.parse(vault.held.get(recordKey()) ?? '{}')

describe('a server with a login', () => {
  it('is called after a login in a browser, with everything in the vault', async () => {
    const { logins, call } = start()
    await expect(call()).rejects.toMatchObject({ name: 'UnauthorizedError' })
    const begun = await logins.begin('files')
    const url = new URL(begun?.url ?? '')
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      code_challenge_method: 'S256',
      resource: remote.url,
      scope: expect.stringContaining('mcp'),
      redirect_uri: `${ORIGIN}${CALLBACK_PATH}`,
    })
    expect(url.searchParams.get('state')).toMatch(/^[\w-]{43}$/)
    expect(await logins.finish(await comeBack(url.href))).toBe('files')
    expect(changed).toEqual(['files'])
    expect(await call()).toEqual(answered)
    expect(remote.grants).toEqual(['authorization_code'])
    expect(record()).toMatchObject({ tokens: { access_token: expect.any(String), refresh_token: expect.any(String) } })
  })

  it('takes a state once, in time, and no other', async () => {
    const { logins, call } = start()
    const begun = await logins.begin('files')
    const back = await comeBack(begun?.url ?? '')
    await expect(logins.finish({ ...back, state: `${back['state']}x` })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(logins.finish({ code: back['code'] })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(logins.finish({ ...back, iss: 'https://evil.example' })).rejects.toThrow(/iss/i)
    await expect(logins.finish(back)).rejects.toMatchObject({ code: 'forbidden' })
    const late = await logins.begin('files')
    const lateBack = await comeBack(late?.url ?? '')
    ahead = 601_000
    await expect(logins.finish(lateBack)).rejects.toMatchObject({ code: 'forbidden' })
    ahead = 0
    const denied = await logins.begin('files')
    const state = new URL(denied?.url ?? '').searchParams.get('state') ?? ''
    await expect(logins.finish({ state, error: 'access_denied' })).rejects.toThrow('access_denied')
    await expect(call()).rejects.toMatchObject({ name: 'UnauthorizedError' })
    expect(changed).toEqual([])
  })

  it('is logged in still after the token ended, by one renewal for many calls', async () => {
    const { logins, call } = start()
    await logins.finish(await comeBack((await logins.begin('files'))?.url ?? ''))
    const first = record().tokens
    later = 600_000
    expect(await call(8)).toEqual(answered)
    const second = record().tokens
    expect(remote.grants).toEqual(['authorization_code', 'refresh_token'])
    expect(second.access_token).not.toBe(first.access_token)
    expect(second.refresh_token).not.toBe(first.refresh_token)
  })

  it('wants a new login when its tokens were revoked, and after a logout', async () => {
    const { logins, call } = start()
    await logins.finish(await comeBack((await logins.begin('files'))?.url ?? ''))
    await remote.revoke(true)
    const { tokens } = record()
    const ended = { ...record(), expiresAt: 0, tokens: { ...tokens, refresh_token: 'unknown' } }
    vault.held.set(recordKey(), JSON.stringify(ended))
    await expect(call()).rejects.toThrow()
    expect(warnings).toEqual([
      expect.stringContaining('the login at the MCP server "files" could not be renewed: wants a login'),
    ])
    vault.held.set(recordKey(), JSON.stringify({ ...record(), tokens }))
    expect(await logins.logout('files')).toBe(true)
    expect(record().tokens).toBeUndefined()
    expect(JSON.stringify([...vault.held])).not.toContain('refresh_token')
    await expect(call()).rejects.toMatchObject({ name: 'UnauthorizedError' })
  })

  it('needs no person with a client of its own', async () => {
    const { logins, call } = start({
      client_id: 'robot',
      client_secret: 'the-secret-of-the-robot',
      scopes: ['mcp'],
      grant: 'client_credentials',
    })
    const said = vi.spyOn(console, 'warn')
    expect(await call()).toEqual(answered)
    expect(remote.grants).toEqual(['client_credentials'])
    // The client is bound to its authorization server, so the SDK has nothing to complain about beside the log.
    expect([record().client.information.issuer, said.mock.calls]).toEqual([remote.issuer, []])
    said.mockRestore()
    expect(JSON.stringify([...vault.held])).not.toContain('the-secret-of-the-robot')
    expect(await logins.begin('files')).toBeUndefined()
  })

  it('whose metadata may not be fetched fails with the reason, whatever fails after it', async () => {
    const refusal = new Refusal('forbidden', 'The address 10.0.0.1 is private')
    const { logins } = start(undefined, async (input, init) => {
      if (String(input).includes('oauth-protected-resource')) throw refusal
      return String(input).includes('/.well-known/') ? new Response(null, { status: 404 }) : fetch(input, init)
    })
    await expect(logins.begin('files')).rejects.toBe(refusal)
  })

  it('is unknown, or a program', async () => {
    const { logins } = start()
    await expect(logins.begin('nobody')).rejects.toMatchObject({ code: 'not_found' })
  })
})
