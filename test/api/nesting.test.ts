import { once } from 'node:events'
import { afterAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'

/** Enough to exhaust the stack of what walks a value by calling itself. */
const LEVELS = 3000
const host = await startHost({ config: { default_provider: 'builtin' } })
afterAll(() => host[Symbol.asyncDispose]())
const agent: string = (
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "nest"\n[model]\nprovider = "builtin"' })
).body.agent_id

const keys = (levels: number): string => Array.from({ length: levels }, () => 'a').join('.')
const lists = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
/** Each way TOML has to nest. */
const manifests: Readonly<Record<string, (levels: number) => string>> = {
  'a dotted key': (levels) => `name = "deep"\n${keys(levels)} = 1`,
  'a table header': (levels) => `name = "deep"\n[${keys(levels)}]\nb = 1`,
  'a header of a list of tables': (levels) => `name = "deep"\n[[${keys(levels)}]]\nb = 1`,
  lists: (levels) => `name = "deep"\nx = ${lists(levels)}`,
  'inline tables': (levels) => `name = "deep"\nx = ${'{ a = '.repeat(levels)}1${' }'.repeat(levels)}`,
  'dotted keys in inline tables': (levels) =>
    `name = "deep"\nx = { ${keys(levels / 2)} = { ${keys(levels / 2)} = 1 } }`,
}
const tooDeep = {
  code: 'invalid_request',
  message: expect.stringMatching(/deeper than 64 levels.*http\.max_json_depth/),
}

describe('a manifest', () => {
  for (const [name, make] of Object.entries(manifests)) {
    it(`is refused when ${name} nests it too deep`, async () => {
      for (const levels of [100, LEVELS]) {
        const { status, body } = await host.json('POST', '/api/agents', { manifest_toml: make(levels) })
        expect(body.error).toMatchObject(tooDeep)
        expect(status).toBe(400)
      }
    })
    it(`that nests in ${name} as deep as is allowed can be cloned and edited`, async () => {
      const made = await host.json('POST', '/api/agents', {
        manifest_toml: make(60).replace('"deep"', JSON.stringify(`deep in ${name}`)),
      })
      expect(made.status).toBe(201)
      const id: string = made.body.agent_id
      expect((await host.json('POST', `/api/agents/${id}/clone`)).status).toBe(201)
      expect((await host.json('PUT', `/api/agents/${id}/update`, { description: 'still works' })).status).toBe(200)
    })
  }
  it('is refused when it replaces that of an agent', async () => {
    const { status, body } = await host.json('PUT', `/api/agents/${agent}/update`, {
      manifest_toml: `name = "nest"\n${keys(LEVELS)} = 1`,
    })
    expect([status, body.error]).toEqual([400, expect.objectContaining(tooDeep)])
  })
})

describe('JSON', () => {
  const deep = `{"content":"x","message":"x","text":"x","kv":{},"value":${lists(LEVELS)}}`
  it.each([
    ['POST', '/api/agents'],
    ['PUT', `/api/agents/${agent}/files/x.txt`],
    ['POST', `/api/agents/${agent}/message`],
    ['POST', '/api/config/set'],
    ['POST', '/v1/chat/completions'],
    ['PUT', `/api/memory/agents/${agent}/kv/x`],
    ['POST', `/api/agents/${agent}/memory/import`],
  ])('in the body of %s %s is refused', async (method, path) => {
    const response = await host.fetch(path, { method, headers: { 'content-type': 'application/json' }, body: deep })
    const { error } = (await response.json()) as { error: { message: string } }
    expect(error.message).toMatch(/nested deeper than \d+ levels/)
    expect(response.status).toBe(400)
  })
  it('in a frame of a WebSocket is refused and the socket goes on', async () => {
    const socket = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${agent}/ws`)
    const frames: { type: string; content?: string }[] = []
    const seen = new EventTarget()
    socket.addEventListener('message', ({ data }) => {
      const frame = JSON.parse(String(data)) as { type: string; content?: string }
      frames.push(frame)
      seen.dispatchEvent(new Event(frame.type))
    })
    await once(seen, 'connected')
    const refused = once(seen, 'error')
    socket.send(deep)
    await refused
    expect(frames.at(-1)?.content).toMatch(/nested deeper than 64 levels/)
    const pong = once(seen, 'pong')
    socket.send('{"type":"ping"}')
    await pong
    socket.close()
    await once(socket, 'close')
  })
  it('as the arguments of a tool is not built: the tool is told that they are no JSON', async () => {
    const { readArgs } = await import('../../adapters/providers/contract.ts')
    expect(readArgs(deep)).toBe(deep)
    expect(readArgs('{"a":[[1]]}')).toEqual({ a: [[1]] })
  })
})
