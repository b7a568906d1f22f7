import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { startMcp, untilState, viewOf } from './servers.ts'

const SECRET = 'the-header-of-the-operator'
const DEEP = 100_000
const PAGES: Readonly<Record<string, string>> = {
  plain: 'http://login.example.com/authorize',
  password: 'https://ada:secret@login.example.com/authorize',
  long: `https://login.example.com/${'x'.repeat(20_000)}`,
}
/** How each token is answered; one of a newline would be shown by the error of a header. */
const TOKENS: Readonly<Record<string, string>> = { newline: 'evil-1\r\nX-Evil: 1', wide: 'evil-\u{1f600}' }

/** One server for all faults: the first part of the path names the fault. */
async function answer(request: IncomingMessage, response: ServerResponse, origin: string): Promise<void> {
  const path = request.url ?? ''
  const fault = /(\w+)$/.exec(path)?.[1] ?? ''
  const body = await text(request)
  const json = (value: unknown, status = 200): void => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof value === 'string' ? value : JSON.stringify(value))
  }
  if (path.startsWith('/.well-known/oauth-protected-resource'))
    return json({ resource: `${origin}/${fault}`, authorization_servers: [`${origin}/as/${fault}`] })
  if (path.startsWith('/.well-known/')) {
    const issuer = `${origin}/as/${fault}`
    return json({
      issuer,
      authorization_endpoint: PAGES[fault] ?? `${issuer}`,
      token_endpoint: `${origin}/token/${fault}`,
      registration_endpoint: `${origin}/register/${fault}`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
    })
  }
  if (path.startsWith('/register/')) return json({ client_id: 'svc', redirect_uris: [origin] }, 201)
  if (path.startsWith('/token/')) return json({ access_token: TOKENS[fault], token_type: 'bearer' })
  if (request.method !== 'POST') return void response.writeHead(405).end()
  const isLogin = fault in PAGES || fault in TOKENS
  if (isLogin) return void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
  const { id, method, params } = JSON.parse(body) as Json
  if (id === undefined) return void response.writeHead(202).end()
  const result = (value: string): void => json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${value}}`)
  if (method === 'initialize')
    return result(
      JSON.stringify({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: fault, version: '1' },
      }),
    )
  if (method === 'tools/list') return result('{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}')
  if (fault === 'echo')
    return void response
      .writeHead(500)
      .end(`\u001B[31mfailed\n${JSON.stringify(request.headers)}${'x'.repeat(1_000_000)}`)
  if (fault === 'deep') return result(`{"content":[],"structuredContent":${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}}`)
  if (fault === 'stream') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const nested = `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`
    return void response.end(
      `data: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"structuredContent":${nested}}}\n\n`,
    )
  }
  return result('{"content":[{"type":"text","text":5}]}')
}

let test: PluginTest
const remote = createServer((request, response) => {
  const { port } = remote.address() as AddressInfo
  void answer(request, response, `http://127.0.0.1:${port}`)
})
beforeAll(async () => {
  await new Promise<void>((resolve) => remote.listen(0, '127.0.0.1', resolve))
  const { port } = remote.address() as AddressInfo
  const names = ['echo', 'deep', 'stream', 'types', ...Object.keys(PAGES), ...Object.keys(TOKENS)]
  const servers = names.map((name) => ({
    name,
    url: `http://127.0.0.1:${port}/${name}`,
    protocol: 'initialize',
    headers: { 'X-Key': SECRET },
  }))
  test = await startMcp(servers, {}, {}, { fetch: 'network' })
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  remote.closeAllConnections()
  remote.close()
})
const logIn = (name: string) => test.request<Json>('POST', `/api/mcp/servers/${name}/login`)

describe('a server over HTTP that', () => {
  it.each([
    ['shows the headers of the request in a long error', 'echo', 'failed {'],
    ['nests its answer too deeply', 'deep', 'nested deeper than 64 levels'],
    ['nests an event too deeply', 'stream', 'nested deeper than 64 levels'],
    ['answers with other types', 'types', 'content.0: not what the specification of MCP says'],
  ])('%s is said to, in one line without secrets', async (_, name, problem) => {
    await untilState(test, name, 'connected')
    const answered = await test.callTool(`mcp_${name}_go`, {})
    const { error } = await viewOf(test, name)
    const { body } = await test.request<Json>('GET', `/api/mcp/servers/${name}/logs`)
    expect(answered.text).toContain(problem)
    expect(JSON.stringify([answered, error, body, test.log])).not.toContain(SECRET)
    for (const shown of [answered.text, error ?? '']) {
      expect(shown.length).toBeLessThan(1500)
      expect(shown).not.toMatch(/\p{Cc}/u)
    }
  })
})

describe('an authorization server that', () => {
  it.each([
    ['is no https page', 'plain', 'no https page'],
    ['has a password in its address', 'password', 'a password in it'],
    ['has an address without end', 'long', 'more than 16384 characters'],
  ])('%s sends nobody there', async (_, name, problem) => {
    const { status, body } = await logIn(name)
    expect([status, body.error.message]).toEqual([403, expect.stringContaining(problem)])
  })
  it.each(Object.keys(TOKENS))(
    'answers a token that cannot be sent logs nobody in, and shows it nowhere: %s',
    async (name) => {
      const begun = await logIn(name)
      const state = new URL(begun.body.authorization_url).searchParams.get('state')
      const ended = await test.request<Json>('GET', `/api/mcp/oauth/callback?code=c&state=${state}`)
      expect([ended.status, ended.body.error.message]).toEqual([
        502,
        expect.stringContaining('a token that cannot be sent'),
      ])
      const shown = JSON.stringify([ended.body, await viewOf(test, name), test.log])
      expect(shown).not.toContain('evil-')
    },
  )
})
