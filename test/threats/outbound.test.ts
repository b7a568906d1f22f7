import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOutbound } from '../../core/net/outbound.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import { openTools } from '../support/tool-stage.ts'
import type { ToolStage } from '../support/tool-stage.ts'
import { startHost } from '../support/host.ts'

/** A server on loopback that must never be reached, and counts whoever reaches it. */
async function startTrap(
  answer: (url: string) => { readonly status: number; readonly headers?: Record<string, string> } = () => ({
    status: 200,
  }),
  address = '127.0.0.1',
) {
  const hits: string[] = []
  const server = createServer((request, response) => {
    hits.push(request.url ?? '')
    const { status, headers } = answer(request.url ?? '')
    response.writeHead(status, headers).end('internal secret')
  })
  await new Promise<void>((resolve) => {
    server.listen(0, address, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    hits,
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

let stage: ToolStage
let agent: string
beforeAll(async () => {
  stage = await openTools(['web'])
  agent = await stage.spawn('fetcher', 'network = ["*"]')
})
afterAll(() => stage[Symbol.asyncDispose]())

describe('threats: where requests of the daemon go', () => {
  it.each([
    'http://127.0.0.1:PORT/',
    'http://localhost:PORT/',
    'http://127.1:PORT/',
    'http://2130706433:PORT/',
    'http://0x7f000001:PORT/',
    'http://0177.0.0.1:PORT/',
    'http://0:PORT/',
    'http://0.0.0.0:PORT/',
    'http://[::1]:PORT/',
    'http://[::]:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://[::ffff:7f00:1]:PORT/',
    'http://[64:ff9b::7f00:1]:PORT/',
    'http://[2002:7f00:1::]:PORT/',
    'http://127.0.0.1.:PORT/',
    'http://LOCALHOST.:PORT/',
    'http://①②⑦.0.0.1:PORT/',
    'http://x@127.0.0.1:PORT/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/',
    'http://metadata.google.internal/',
    'http://10.0.0.1/',
    'http://192.168.1.1/',
    'http://172.16.0.1/',
    'http://100.64.0.1/',
    'http://[fe80::1]/',
    'http://[fc00::1]/',
    'http://198.18.0.1/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'file:///etc/passwd',
    'gopher://127.0.0.1:PORT/',
    'ftp://127.0.0.1/',
    'data:text/plain,x',
  ])('SSRF literals: %s', async (url) => {
    await using trap = await startTrap()
    const { text, failed } = await stage.call(agent, 'web_fetch', { url: url.replace('PORT', String(trap.port)) })
    expect(failed).toBe(true)
    expect(text).not.toContain('internal secret')
    expect(trap.hits).toEqual([])
  })

  it('SSRF redirect', async () => {
    // Of this machine too, and not the one that is permitted.
    await using inner = await startTrap(undefined, '127.0.0.2')
    await using outer = await startTrap((url) => ({
      status: 302,
      headers: { location: url === '/twice' ? '/once' : `http://localhost:${inner.port}/` },
    }))
    // The first hop is permitted by name of its address; what it leads to is not.
    const outbound = createOutbound({
      settings: () => ({
        allow: ['127.0.0.1'],
        headersTimeoutMs: 2_000,
        idleTimeoutMs: 2_000,
        maxBytes: 100_000,
        maxRedirects: 5,
      }),
      resolve: async () => [{ address: '127.0.0.2', family: 4 }],
    })
    try {
      for (const path of ['/once', '/twice'])
        await expect(outbound.fetch(`http://127.0.0.1:${outer.port}${path}`)).rejects.toThrow(
          /localhost are refused: it is this machine/,
        )
      expect(outer.hits).toEqual(['/once', '/twice', '/once'])
      expect(inner.hits).toEqual([])
    } finally {
      await outbound[Symbol.asyncDispose]()
    }
  })

  it('SSRF DNS rebinding / TOCTOU', async () => {
    await using trap = await startTrap()
    const answers = [[{ address: '203.0.113.5', family: 4 as const }], [{ address: '127.0.0.1', family: 4 as const }]]
    let asked = 0
    const outbound = createOutbound({
      settings: () => ({ allow: [], headersTimeoutMs: 300, idleTimeoutMs: 300, maxBytes: 100_000, maxRedirects: 5 }),
      // A public address for whoever checks first, this machine for whoever connects.
      resolve: async () => answers[Math.min(asked++, 1)] ?? [],
    })
    try {
      await expect(outbound.fetch(`http://rebind.example:${trap.port}/`)).rejects.toThrow()
      await expect(outbound.fetch(`http://rebind.example:${trap.port}/`)).rejects.toThrow(/refused: it is this machine/)
      expect(trap.hits).toEqual([])
    } finally {
      await outbound[Symbol.asyncDispose]()
    }
  })

  it('Provider key exfiltration by URL override', async () => {
    await using attacker = await startFakeProvider()
    await using host = await startHost({ config: { providers: { openai: { api_key: 'sk-canary-0123456789' } } } })
    expect((await host.json('PUT', '/api/providers/openai/url', { url: attacker.url })).status).toBe(200)
    const {
      body: { agent_id: id },
    } = await host.json('POST', '/api/agents', {
      manifest_toml: `name = "a"\n[model]\nprovider = "openai"\nmodel = "fake-1"\n`,
    })
    const {
      body: { agent_id: other },
    } = await host.json('POST', '/api/agents', {
      manifest_toml: `name = "b"\n[model]\nprovider = "openai"\nmodel = "fake-1"\nbase_url = "${attacker.url}"\n`,
    })
    for (const one of [id, other])
      if (one !== undefined) await host.json('POST', `/api/agents/${one}/message`, { message: 'hello' })
    await host.json('POST', '/api/providers/openai/test')
    expect(JSON.stringify(attacker.requests.map(({ headers, path, body }) => ({ headers, path, body })))).not.toContain(
      'sk-canary',
    )
    host.defects()
  })
})
