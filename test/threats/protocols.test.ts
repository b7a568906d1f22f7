import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { raw } from '../core/http/harness.ts'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

/** Doors of protocols between programs. Those that are not served yet must be as shut as those that will be. */
const entryPoints = [
  ['POST', '/mcp'],
  ['GET', '/mcp'],
  ['GET', '/.well-known/agent.json'],
  ['GET', '/.well-known/agent-card.json'],
  ['GET', '/a2a/agents'],
  ['POST', '/a2a/tasks/send'],
  ['POST', '/a2a/tasks'],
  ['GET', '/a2a/tasks/x'],
  ['GET', '/a2a/tasks/x/messages'],
  ['POST', '/a2a/tasks/x/cancel'],
  ['GET', '/api/mcp/servers'],
  ['POST', '/api/mcp/servers'],
  ['DELETE', '/api/mcp/servers/x'],
  ['GET', '/api/mcp/tools'],
  ['GET', '/api/a2a/agents'],
  ['POST', '/api/a2a/discover'],
  ['POST', '/api/a2a/send'],
  ['GET', '/api/a2a/tasks/x/status'],
] as const

let locked: ChatStage
let open: ChatStage
let trap: ReturnType<typeof createServer>
let hits = 0
beforeAll(async () => {
  trap = createServer((_, response) => {
    hits++
    response.end('{}')
  })
  await new Promise<void>((resolve) => {
    trap.listen(0, '127.0.0.1', resolve)
  })
  ;[locked, open] = await Promise.all([openChat({ config: { api_key: 'the-key' } }), openChat()])
  // The start has an entry of its own, which comes a moment after the port.
  await Promise.all([locked.host.app.greeted(), open.host.app.greeted()])
})
afterAll(async () => {
  await Promise.all([locked[Symbol.asyncDispose](), open[Symbol.asyncDispose]()])
  trap.closeAllConnections()
  await new Promise((resolve) => {
    trap.close(resolve)
  })
})

const bodies = (): readonly unknown[] => {
  const url = `http://127.0.0.1:${(trap.address() as AddressInfo).port}/`
  return [
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'shell_exec', arguments: { command: 'id' } } },
    { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    [{ jsonrpc: '2.0', id: 1, method: 'initialize' }],
    { agent_id: open.agent, message: { role: 'user', parts: [{ text: 'do as I say' }] } },
    { url, agent_id: 'x', message: 'x', name: 'x', transport: 'http', command: 'sh', args: [] },
  ]
}
const send = async (stage: ChatStage, method: string, path: string, headers: readonly string[], body: unknown) => {
  const port = Number(new URL(stage.host.url).port)
  const text = method === 'GET' ? '' : JSON.stringify(body)
  return raw(
    port,
    [
      `${method} ${path} HTTP/1.1`,
      ...(headers.some((header) => header.startsWith('Host:')) ? [] : [`Host: 127.0.0.1:${port}`]),
      'Connection: close',
      ...(method === 'GET' ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
      ...headers,
      '',
      text,
    ].join('\r\n'),
  )
}
const audited = async (stage: ChatStage, headers: Record<string, string> = {}): Promise<number> =>
  (await stage.host.json('GET', '/api/audit/verify', undefined, headers)).body.chain_length

describe('threats: what other programs may ask for', () => {
  it('MCP/A2A endpoint abuse: without the key nothing is done and nothing is told', async () => {
    const key = { authorization: 'Bearer the-key' }
    const before = await audited(locked, key)
    for (const [method, path] of entryPoints)
      for (const body of bodies()) {
        const { status, body: text } = await send(locked, method, path, [], body)
        expect([method, path, [401, 404, 405].includes(status), status]).toEqual([method, path, true, status])
        expect(text).not.toMatch(/shell_exec|inputSchema|protocolVersion|"skills"|assistant/)
      }
    expect(locked.fake.requests).toEqual([])
    expect(await audited(locked, key)).toBe(before)
    expect(hits).toBe(0)
  })

  it('MCP/A2A endpoint abuse: a page of another site, and a name that was rebound, reach none of them', async () => {
    const before = await audited(open)
    for (const [method, path] of entryPoints) {
      for (const host of ['evil.example', 'localhost.evil.example:4545'])
        expect([path, (await send(open, method, path, [`Host: ${host}`], {})).status]).toEqual([path, 403])
      if (method === 'GET') continue
      for (const body of bodies())
        for (const from of ['https://evil.example', 'null', 'http://localhost.evil.example'])
          expect([path, (await send(open, method, path, [`Origin: ${from}`], body)).status]).toEqual([path, 403])
      expect([path, (await send(open, method, path, ['Sec-Fetch-Site: cross-site'], {})).status]).toEqual([path, 403])
    }
    expect(open.fake.requests).toEqual([])
    expect(await audited(open)).toBe(before)
    expect(hits).toBe(0)
  })

  it('MCP/A2A endpoint abuse: asking costs, so that nobody tries names for ever', async () => {
    await using small = await openChat({ config: { rate_limit: { tokens_per_minute: 30 } } })
    const statuses: number[] = []
    for (let n = 0; n < 40; n++)
      statuses.push((await send(small, 'POST', entryPoints[n % entryPoints.length]?.[1] ?? '/mcp', [], {})).status)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(5)
  })
})
