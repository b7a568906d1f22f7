import { expect } from 'vitest'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Answer, TestHost } from '../support/host.ts'
import type { FakeProvider } from '../support/fake-provider.ts'

/** A daemon whose limits are set low, a model that is scripted, and a server on this machine that it may ask. */
export interface LimitStage {
  readonly host: TestHost
  readonly fake: FakeProvider
  readonly outside: Outside
  /** The id of a new agent that may do everything. */
  agent(more?: string): Promise<string>
  post(path: string, body?: unknown): Promise<Answer>
  /** Calls a tool as the loop would; what the model would read. */
  tool(agent: string, name: string, args?: unknown): Promise<{ readonly text: string; readonly failed: boolean }>
}
/**
 * Limits that are set together. `limits` is dotted keys of the configuration with what reaches each: below it passes,
 * above it is refused.
 */
export interface LimitGroup {
  readonly name: string
  readonly config: (outside: Outside, fake: FakeProvider) => Record<string, unknown>
  readonly limits: Readonly<Record<string, (stage: LimitStage) => Promise<void>>>
}

/** What the configuration names that nobody runs into. */
export type Reason =
  | 'how often the daemon works for itself'
  | 'how long something is kept'
  | 'when something is done, not whether'
  | 'a price or a part'

const uuid = /^[0-9a-f-]{36}$/
/**
 * A refusal as the interface has it: the status and the format of its code, `Retry-After` where waiting helps, and a
 * text that says what, where and how to change it.
 */
export function refused(
  { status, headers, body }: Answer,
  expected: { readonly status: number; readonly code?: string; readonly says: RegExp },
): void {
  const message: unknown = status === 429 ? body?.error : body?.error?.message
  expect({ status, message }).toEqual({ status: expected.status, message: expect.stringMatching(expected.says) })
  if (status === 429) expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
  else
    expect(body.error).toEqual({
      code: expected.code,
      message,
      details: expect.any(Object),
      request_id: expect.stringMatching(uuid),
    })
  expect(headers.get('x-request-id')).toMatch(uuid)
}

/** Something outside of the daemon: the path says how it answers. */
export interface Outside extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly seen: readonly string[]
}
export async function startOutside(): Promise<Outside> {
  const seen: string[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const url = request.url ?? '/'
    seen.push(url)
    request.resume()
    const [, what = '', much = '0'] = url.split('/')
    if (what === 'silent') return
    if (what === 'stall') {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('begun')
      return
    }
    if (what === 'hops') {
      const left = Number(much)
      if (left > 0) response.writeHead(302, { location: `/hops/${left - 1}` }).end()
      else response.writeHead(200, { 'content-type': 'text/plain' }).end('there')
    } else if (what === 'fail') response.writeHead(503).end()
    else if (what === 'models')
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          openai: {
            id: 'openai',
            name: 'OpenAI',
            npm: 'x',
            env: [],
            models: Object.fromEntries(
              Array.from({ length: Number(much) }, (_, n) => [
                `m-${n}`,
                {
                  id: `m-${n}`,
                  name: `M ${n}`,
                  cost: { input: 1, output: 1 },
                  limit: { context: 1000, output: 100 },
                },
              ]),
            ),
          },
        }),
      )
    else response.writeHead(200, { 'content-type': 'text/plain' }).end('x'.repeat(Number(much)))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}
