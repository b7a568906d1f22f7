import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ProviderLink } from 'svc/providers'
import { createOutbound } from '../../../core/net/outbound.ts'
import { copilot } from '../../../adapters/providers/openai-compatible/copilot.ts'
import type { VendorConfig } from '../../../adapters/providers/openai-compatible/driver.ts'

let answer: (response: ServerResponse) => void
let asked: number
const server = createServer((_, response) => {
  asked++
  answer(response)
})
const outbound = createOutbound({
  settings: () => ({
    allow: ['127.0.0.1'],
    headersTimeoutMs: 2_000,
    idleTimeoutMs: 2_000,
    maxBytes: 1_000_000,
    maxRedirects: 0,
  }),
})
let link: ProviderLink<VendorConfig>
beforeEach(async () => {
  asked = 0
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  link = {
    name: 'github-copilot',
    baseUrl: origin,
    fetch: outbound.fetch,
    apiKey: async () => 'gho_test',
    config: { github_api_url: origin } as VendorConfig,
  }
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => {
    server.close(resolve)
  })
})

const never = new AbortController().signal
const headers = (signal = never) => copilot(link).headers(signal, undefined)

describe('the exchange for a Copilot token', () => {
  it('that breaks off is cut, not malformed', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' }).write('{"token":"tid')
      setImmediate(() => response.socket?.resetAndDestroy())
    }
    await expect(headers()).rejects.toMatchObject({ reason: 'cut', retry: 'later' })
  })

  it.each(['<html>welcome</html>', '{"token":""}', '[]'])('that answers %s is malformed', async (text) => {
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    }
    await expect(headers()).rejects.toMatchObject({ reason: 'malformed', retry: 'later' })
  })

  it('is not begun for a caller who has left', async () => {
    answer = (response) => {
      response.writeHead(500).end()
    }
    const left = AbortSignal.abort(new Error('left'))
    await expect(headers(left)).rejects.toThrow('left')
    expect(asked).toBe(0)
  })
})
