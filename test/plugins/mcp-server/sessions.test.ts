import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { ChatStage } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { openMcp } from './stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openMcp(
    { approve_by_client: true, retry_ms: 1 },
    {},
    { approvals: { agents: { conformance: 'risky' }, require_approval: ['test_simple_text'] } },
  )
})
afterAll(() => stage[Symbol.asyncDispose]())

async function open(capabilities: ClientCapabilities = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities })
  return client
}
const connect = (client: Client): Promise<void> =>
  client.connect(new StreamableHTTPClientTransport(new URL('/mcp', stage.host.url)) as never)
const textOf = (answer: unknown): string | undefined =>
  (answer as { content: readonly { text?: string }[] }).content[0]?.text

test('a tool asks the model and the person at the client', async () => {
  const client = await open({ sampling: {}, elicitation: {} })
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: 'assistant',
    model: 'own',
    content: { type: 'text', text: `asked ${params.maxTokens}` },
  }))
  client.setRequestHandler(ElicitRequestSchema, () => ({
    action: 'accept',
    content: { username: 'ada', email: 'ada@example.org' },
  }))
  await connect(client)
  expect(textOf(await client.callTool({ name: 'test_sampling', arguments: { prompt: 'x' } }))).toContain('asked 100')
  expect(textOf(await client.callTool({ name: 'test_elicitation', arguments: { message: 'x' } }))).toContain('"ada"')
  await client.close()
})

interface Pending {
  readonly approvals: readonly { readonly id: string; readonly status: string }[]
}
const pending = async (): Promise<readonly string[]> =>
  (await stage.host.json<Pending>('GET', '/api/approvals')).body.approvals
    .filter(({ status }) => status === 'pending')
    .map(({ id }) => id)

test('a call that needs a person waits for the answer over the API', async () => {
  const client = await open()
  await connect(client)
  const told: (string | undefined)[] = []
  const call = client.callTool({ name: 'test_simple_text' }, undefined, {
    onprogress: ({ message }) => void told.push(message),
  })
  const [id] = await eventually(async () => {
    const waiting = await pending()
    expect(waiting).toHaveLength(1)
    return waiting
  })
  expect((await stage.host.json('POST', `/api/approvals/${id}/approve`, {})).status).toBe(200)
  expect(textOf(await call)).toBe('This is a simple text response for testing.')
  expect(told[0]).toMatch(/^Waits for an approval: /)
  await client.close()
})

test.each([
  ['approves', { action: 'accept', content: { approve: true } }, false],
  ['does not tick the box', { action: 'accept', content: { approve: false } }, true],
  ['declines', { action: 'decline' }, true],
] as const)('whoever sits at the client %s (plugins.mcp-server.approve_by_client)', async (_, answer, isRefused) => {
  const client = await open({ elicitation: {} })
  client.setRequestHandler(ElicitRequestSchema, () => ({ ...answer }))
  await connect(client)
  const result = await client.callTool({ name: 'test_simple_text' })
  expect(result.isError === true).toBe(isRefused)
  await client.close()
})

test('a client that breaks while it is asked fails nothing: somebody else answers', async () => {
  const client = await open({ elicitation: {} })
  const asked = vi.fn<() => never>(() => {
    throw new Error('no window')
  })
  client.setRequestHandler(ElicitRequestSchema, asked)
  await connect(client)
  const call = client.callTool({ name: 'test_simple_text' })
  await eventually(() => expect(asked).toHaveBeenCalled())
  const [id] = await pending()
  await stage.host.json('POST', `/api/approvals/${id}/approve`, {})
  expect(textOf(await call)).toBe('This is a simple text response for testing.')
  await client.close()
})

test('a client is told of new tools, and of what it follows until it does not any more', async () => {
  const client = await open()
  const told = vi.fn<() => void>()
  client.setNotificationHandler(ToolListChangedNotificationSchema, told)
  await connect(client)
  let count = 0
  // The stream that it is told on opens a moment after the handshake.
  await eventually(async () => {
    await stage.spawn(`another-${++count}`)
    expect(told).toHaveBeenCalled()
  })
  const changed: string[] = []
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void changed.push(params.uri))
  await client.subscribeResource({ uri: 'svc://agents' })
  await stage.spawn('followed')
  await eventually(() => expect(changed).toContain('svc://agents'))
  await client.unsubscribeResource({ uri: 'svc://agents' })
  // What it was still told comes before the news of the next agent.
  for (const name of ['next', 'not-followed']) {
    told.mockClear()
    await stage.spawn(name)
    await eventually(() => expect(told).toHaveBeenCalled())
    if (name === 'next') changed.length = 0
  }
  expect(changed).toEqual([])
  await client.close()
})

test('the official client goes on after a cut connection (Last-Event-ID)', async () => {
  const client = await open()
  const resumed: (string | null)[] = []
  let isCut = false
  // The first answer to the call is cut once it has begun.
  const cutting: typeof fetch = async (address, init) => {
    const answer = await stage.host.fetch('/mcp', init)
    const lastId = new Headers(init?.headers).get('last-event-id')
    if (lastId !== null) resumed.push(lastId)
    if (isCut || !String(init?.body).includes('test_hanging') || !answer.body) return answer
    isCut = true
    const reader = answer.body.getReader()
    const { value } = await reader.read()
    await reader.cancel()
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(value)
        controller.close()
      },
    })
    return new Response(body, { status: answer.status, headers: answer.headers })
  }
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', stage.host.url), {
    fetch: cutting as never,
    reconnectionOptions: {
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 1,
      reconnectionDelayGrowFactor: 1,
      maxRetries: 5,
    },
  })
  await client.connect(transport as never)
  const told: (string | undefined)[] = []
  const leave = new AbortController()
  const call = client.callTool({ name: 'test_hanging' }, undefined, {
    signal: leave.signal,
    onprogress: ({ message }) => void told.push(message),
  })
  await eventually(() => expect(resumed.length).toBeGreaterThan(0))
  await eventually(() => expect(told).toEqual(['hangs']))
  leave.abort()
  await expect(call).rejects.toThrow()
  await client.close()
})
