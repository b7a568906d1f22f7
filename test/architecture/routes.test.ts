import { describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'

/**
 * What answers without a key when one is set (Interface 5.2): the health check and whether a
 * load balancer is to send requests, the page with its parts, which carry no
 * data, and where a login at an MCP server comes back to.
 */
const open = [
  'GET /',
  'GET /api/channels/:name/webhook',
  'GET /api/channels/:name/webhook/:account',
  'GET /api/health',
  'GET /api/mcp/oauth/callback',
  'GET /api/mcp/oauth/client-metadata.json',
  'GET /api/ready',
  'GET /assets/**:file',
  'GET /favicon.svg',
  'GET /pages/:plugin/:page/**:file',
  'GET /pages/kit/:file',
  'POST /api/channels/:name/webhook',
  'POST /api/channels/:name/webhook/:account',
]

describe('the live routes', () => {
  it('are public only where the interface says so', async () => {
    await using host = await startHost({ listen: false })
    const routes = host.app.routes()
    expect(routes.length).toBeGreaterThan(50)
    expect(
      routes
        .filter(({ auth }) => auth !== 'bearer')
        .map(({ method, path }) => `${method} ${path}`)
        .toSorted(),
    ).toEqual(open)
  })

  it('each cost something and say what they do', async () => {
    await using host = await startHost({ listen: false })
    expect(
      host.app
        .routes()
        .filter(({ cost, summary }) => !(cost >= 1) || summary.trim() === '')
        .map(({ method, path }) => `${method} ${path}`),
    ).toEqual([])
  })

  it('refuse a caller without the key before anything else', async () => {
    await using host = await startHost({
      config: { api_key: 'a-key-for-this-test', rate_limit: { tokens_per_minute: 1_000_000 } },
    })
    const answers = await Promise.all(
      host.app
        .routes()
        .filter(({ auth }) => auth === 'bearer')
        .map(async ({ method, path }) => {
          const response = await fetch(host.url + path.replaceAll(/\*{0,2}:\w+/g, 'x'), {
            method,
            headers: { 'content-type': 'application/json' },
            ...(method === 'GET' ? {} : { body: '{' }),
          })
          await response.arrayBuffer()
          return `${method} ${path}: ${response.status}`
        }),
    )
    expect(answers.filter((line) => !line.endsWith(': 401'))).toEqual([])
  })
})
