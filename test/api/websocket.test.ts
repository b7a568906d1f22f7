import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import type { Json } from '../support/json.ts'

type Frame = { readonly type: string } & Record<string, Json>
let stage: ChatStage
let serial = 0
beforeAll(async () => {
  stage = await openChat({
    config: { plugins: { chat: { agents_updated_ms: 200, agents_updated_first_ms: 1, text_flush_ms: 25 } } },
  })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
const spawn = (tools?: string[]): Promise<string> => stage.spawn(`ws-${serial++}`, tools)

class Client {
  readonly frames: Frame[] = []
  readonly socket: WebSocket
  #waiting: { fits: (frame: Frame) => boolean; resolve: (frame: Frame) => void }[] = []
  #seen = 0
  constructor(socket: WebSocket) {
    this.socket = socket
    socket.addEventListener('message', ({ data }) => {
      const frame = JSON.parse(String(data))
      this.frames.push(frame)
      for (const each of this.#waiting.filter(({ fits }) => fits(frame))) each.resolve(frame)
      this.#waiting = this.#waiting.filter(({ fits }) => !fits(frame))
    })
  }
  static async open(agent: string, at: ChatStage = stage): Promise<Client> {
    const client = new Client(new WebSocket(`${at.host.url.replace('http', 'ws')}/api/agents/${agent}/ws`))
    await client.next('connected')
    return client
  }
  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }
  /** The next frame of a type that nobody has waited for yet. */
  next(...types: string[]): Promise<Frame> {
    const at = this.frames.findIndex((frame, index) => index >= this.#seen && types.includes(frame.type))
    const found = at === -1 ? undefined : this.frames[at]
    const wait = found
      ? Promise.resolve(found)
      : new Promise<Frame>((resolve) => this.#waiting.push({ fits: (frame) => types.includes(frame.type), resolve }))
    return wait.then((frame) => {
      this.#seen = this.frames.indexOf(frame) + 1
      return frame
    })
  }
  async command(text: string): Promise<string> {
    this.send({ type: 'message', content: text })
    return (await this.next('response', 'error'))['content']
  }
  /** Without the frames that come by the clock. */
  types(): string[] {
    return this.frames.map(({ type }) => type).filter((type) => type !== 'agents_updated')
  }
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.socket.addEventListener('close', resolve))
    this.socket.close()
    await closed
  }
}
async function upgrade(path: string): Promise<number> {
  const { request } = await import('node:http')
  return new Promise((resolve, reject) => {
    const onward = request(
      stage.host.url + path,
      {
        headers: {
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        },
      },
      (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      },
    )
    onward.on('upgrade', (answer, socket) => {
      socket.destroy()
      resolve(answer.statusCode ?? 0)
    })
    onward.on('error', reject)
    onward.end()
  })
}

describe('the upgrade', () => {
  it('is refused with 400 for an id that is none and 404 for an unknown agent', async () => {
    expect(await upgrade('/api/agents/nonsense/ws')).toBe(400)
    expect(await upgrade('/api/agents/00000000-0000-4000-8000-000000000000/ws')).toBe(404)
    expect(await upgrade(`/api/agents/${stage.agent}/ws`)).toBe(101)
  })
})

describe('a message over the socket', () => {
  it.each([
    [{ type: 'message', content: 'hi' }],
    [{ message: 'hi' }],
    [{ type: 'message', content: { text: 'hi' } }],
    ['hi there'],
  ])('%j gives thinking, deltas and the response', async (frame) => {
    await using client = await Client.open(await spawn())
    client.send(frame)
    const response = await client.next('response')
    expect(response).toMatchObject({
      content: 'Hello from the fake.',
      input_tokens: 10,
      output_tokens: 20,
      iterations: 1,
      cost_usd: null,
    })
    const types = client.types()
    expect(types.slice(0, 2)).toEqual(['connected', 'thinking'])
    expect(new Set(types.slice(2, -1))).toEqual(new Set(['text_delta']))
    expect(
      client.frames
        .filter(({ type }) => type === 'text_delta')
        .map((delta) => delta['content'])
        .join(''),
    ).toBe('Hello from the fake.')
    expect(client.frames[0]).toEqual({ type: 'connected', agent_id: expect.any(String) })
  })
  it('brings the first delta at once and joins the later ones', async () => {
    await using client = await Client.open(await spawn())
    const words = byHand()
    stage.fake.script({ text: words.text })
    client.send({ type: 'message', content: 'count' })
    words.say('0 ')
    expect((await client.next('text_delta'))['content']).toBe('0 ')
    for (let n = 1; n < 500; n++) words.say(`${n} `)
    words.end()
    await client.next('response')
    const deltas = client.frames.filter(({ type }) => type === 'text_delta')
    expect(deltas.map((delta) => delta['content']).join('')).toBe(
      Array.from({ length: 500 }, (_, n) => `${n} `).join(''),
    )
    expect(deltas.length).toBeLessThan(50)
  })
  it('names a tool when it starts', async () => {
    await using client = await Client.open(await spawn(['kv_set']))
    stage.fake.script({ calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] }, { text: 'ok' })
    client.send({ message: 'store' })
    expect(await client.next('tool_start')).toMatchObject({ tool: 'kv_set' })
    expect(await client.next('tool_end')).toMatchObject({
      tool: 'kv_set',
      input: { key: 'a', value: 1 },
      is_error: false,
    })
    expect((await client.next('response'))['content']).toBe('ok')
  })
  it('several at once are answered in order', async () => {
    await using client = await Client.open(await spawn())
    stage.fake.always(({ body }) => ({ text: `re ${String(body.messages?.at(-1)?.content)}` }))
    for (let n = 0; n < 10; n++) client.send({ type: 'message', content: `m${n}` })
    for (let n = 0; n < 10; n++) expect((await client.next('response'))['content']).toBe(`re m${n}`)
    stage.fake.always({ text: ['Hello', ' from', ' the', ' fake.'] })
  })
  it('that fails is an error frame, and the socket goes on', async () => {
    await using client = await Client.open(await spawn())
    stage.fake.script({ status: 401 })
    client.send('hello')
    expect((await client.next('error'))['content']).toContain('openai')
    client.send({ type: 'ping' })
    await client.next('pong')
  })
  it.each(['{"type":"dance"}', '{"type":"message"}', '{"type":"message","content":"  "}', '  '])(
    '%j is an error frame',
    async (raw) => {
      await using client = await Client.open(await spawn())
      client.send(raw)
      expect((await client.next('error'))['content']).not.toBe('')
    },
  )
  it('outlives the socket', async () => {
    const agent = await spawn()
    const words = byHand()
    const index = stage.fake.requests.length
    stage.fake.script({ text: words.text })
    {
      await using client = await Client.open(agent)
      client.send('go on without me')
      await stage.fake.request(index)
    }
    words.say('All the same.')
    words.end()
    await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'next' })
    expect((await stage.session(agent)).messages[1]).toMatchObject({ role: 'Assistant', content: 'All the same.' })
  })
})

describe('the clock of the socket', () => {
  it('agents_updated comes soon and again, without created_at', async () => {
    await using client = await Client.open(await spawn())
    const { agents } = await client.next('agents_updated')
    expect(Object.keys(agents[0]).toSorted()).toEqual(['id', 'model_name', 'model_provider', 'name', 'state'])
    await client.next('agents_updated')
  })
  it('a ping is answered', async () => {
    await using client = await Client.open(await spawn())
    client.send({ type: 'ping' })
    expect(await client.next('pong')).toEqual({ type: 'pong' })
  })
})

describe('slash commands', () => {
  it('/new gives an empty session', async () => {
    const agent = await spawn()
    await using client = await Client.open(agent)
    client.send('hello')
    await client.next('response')
    const before = await stage.session(agent)
    expect(await client.command('/new')).toContain('New session')
    const after = await stage.session(agent)
    expect(after.session_id).not.toBe(before.session_id)
    expect(after.message_count).toBe(0)
  })
  it('/stop cancels what runs, with what was said', async () => {
    await using client = await Client.open(await spawn())
    expect(await client.command('/stop')).toBe('No active run.')
    const words = byHand()
    stage.fake.script({ text: words.text })
    client.send('tell me')
    words.say('Once')
    await client.next('text_delta')
    client.send('/stop')
    const both = [await client.next('response'), await client.next('response')]
    expect(both.map((frame) => frame['content']).toSorted()).toEqual(['Agent run cancelled.', 'Once'])
    words.end()
  })
  it('/usage counts what the session and the agent used', async () => {
    await using client = await Client.open(await spawn())
    client.send('hello')
    await client.next('response')
    expect(await client.command('/usage')).toBe(
      'This session: 1 calls of a model, 10 tokens in, 20 tokens out, unknown cost of 1 calls.\nThis agent: 1 calls of a model, 10 tokens in, 20 tokens out, unknown cost of 1 calls.',
    )
    await client.command('/new')
    expect(await client.command('/usage')).toContain(
      'This session: 0 calls of a model, 0 tokens in, 0 tokens out, $0.0000.\nThis agent: 1 calls',
    )
  })
  it('/think goes with the next request', async () => {
    await using client = await Client.open(await spawn())
    expect(await client.command('/think')).toContain('on')
    expect(await client.command('/think off')).toContain('off')
  })
  it('/models, /providers and /model say what there is', async () => {
    await using client = await Client.open(await spawn())
    expect(await client.command('/providers')).toContain('openai')
    expect(await client.command('/models')).toContain('openai')
    // The catalog knows more of a provider than its default model.
    expect(await client.command('/providers')).toMatch(/openai \(.*\): configured, \d+ models/)
    expect((await client.command('/models openai')).split('\n').length).toBeGreaterThan(5)
    expect(await client.command('/models openai')).toMatch(/, [\d,]+ tokens, \$[\d.]+ in and \$[\d.]+ out per million/)
    expect(await client.command('/models nobody')).toContain('There is no provider "nobody"')
    expect(await client.command('/model')).toContain('fake-1')
  })
  it('/model changes it, for this agent and no other', async () => {
    const agent = await spawn()
    await using client = await Client.open(agent)
    expect(await client.command('/model fake-2')).toMatch(
      /^The model is now fake-2 by openai\. Note: model: provider openai has no model "fake-2" that is known here/,
    )
    expect(await client.command('/model')).toBe('The model is fake-2 by openai.')
    client.send('hello')
    expect(await client.next('response')).toMatchObject({ model: 'fake-2' })
    expect(await client.command('/model nobody/x')).toContain('nobody')
    expect((await stage.host.json('GET', `/api/agents/${await spawn()}`)).body.model.model).toBe('fake-1')
  })
  it('/think on and off go with the next request', async () => {
    await using client = await Client.open(await spawn())
    const asked = async (command: string) => {
      await client.command(command)
      const index = stage.fake.requests.length
      client.send('hello')
      await client.next('response')
      return stage.fake.requests[index]?.body as Record<string, unknown>
    }
    expect(JSON.stringify(await asked('/think on'))).not.toBe(JSON.stringify(await asked('/think off')))
  })
  it('/compact says that there is nothing to do, and summarises what there is', async () => {
    const agent = await spawn()
    await using client = await Client.open(agent)
    expect(await client.command('/compact')).toMatch(/^No compaction needed/)
    for (let n = 0; n < 12; n++) {
      client.send(`message ${n}`)
      await client.next('response')
    }
    stage.fake.script({ text: 'The user counted.' })
    expect(await client.command('/compact')).toMatch(/^Session compacted: \d+ messages summarized, \d+ kept\.$/)
    expect(await client.command('/compact undo')).toMatch(/^Summary taken back: \d+ messages are read in full again\.$/)
    expect(await client.command('/compact undo')).toBe('There is no summary to take back.')
  })
  it('an unknown one says so, and no command reaches the model', async () => {
    await using client = await Client.open(await spawn())
    expect(await client.command('/dance')).toContain('Unknown command')
    expect(stage.fake.requests.every(({ body }) => !String(body.messages?.at(-1)?.content).startsWith('/'))).toBe(true)
  })
  it('come in the other form too', async () => {
    await using client = await Client.open(await spawn())
    client.send({ type: 'command', command: 'providers' })
    expect((await client.next('response'))['content']).toContain('openai')
  })
})

describe('the limits of the socket', () => {
  it('a frame over 64 KB is an error frame, and the socket goes on', async () => {
    await using client = await Client.open(await spawn())
    client.send({ type: 'message', content: 'a'.repeat(66_000) })
    expect(await client.next('error')).toMatchObject({
      content: 'Message too large (max 64KB)',
      code: 'payload_too_large',
    })
    client.send({ type: 'ping' })
    await client.next('pong')
  })
  it('messages use up what the address may ask for; pings hardly do', async () => {
    await using small = await openChat({ config: { rate_limit: { tokens_per_minute: 200 } } })
    const client = await Client.open(small.agent, small)
    for (let n = 0; n < 20; n++) client.send({ type: 'ping' })
    for (let n = 0; n < 20; n++) await client.next('pong')
    for (let n = 0; n < 8; n++) client.send(`m${n}`)
    expect(await client.next('error')).toMatchObject({ code: 'rate_limit' })
    client.socket.close()
  })
  it('hidden control characters do not reach the agent', async () => {
    await using client = await Client.open(await spawn())
    client.send({ type: 'message', content: 'a\u0000\u001b[31mb\tc\nd\u0085' })
    await client.next('response')
    expect(stage.fake.requests.at(-1)?.body.messages?.at(-1)?.content).toBe('a[31mb\tc\nd')
  })
})

describe('what a frame may carry', () => {
  it('its own id comes back with the response, and the turn can be read', async () => {
    const agent = await spawn()
    await using client = await Client.open(agent)
    client.send({ type: 'message', content: 'hi', id: 'mine-1' })
    expect(await client.next('thinking')).toMatchObject({ message_id: 'mine-1', turn_id: expect.any(String) })
    const response = await client.next('response')
    expect(response).toMatchObject({ message_id: 'mine-1', context_pressure: 'low' })
    expect((await stage.host.json('GET', `/api/agents/${agent}/turns/${response['turn_id']}`)).body).toMatchObject({
      state: 'done',
      text: 'Hello from the fake.',
    })
  })
  it("attachments: an image goes to the model, a text is quoted, another agent's is not found", async () => {
    const agent = await spawn()
    await using client = await Client.open(agent)
    const upload = async (name: string, type: string, bytes: Uint8Array<ArrayBuffer> | string): Promise<string> => {
      const form = new FormData()
      form.append('file', new Blob([bytes], { type }), name)
      const answer = await stage.host.fetch(`/api/agents/${agent}/upload`, { method: 'POST', body: form })
      return ((await answer.json()) as { file_id: string }).file_id
    }
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const [image, text, binary, data] = [
      await upload('dot.png', 'image/png', Uint8Array.from(Buffer.from(png, 'base64'))),
      await upload('note.txt', 'text/plain', 'forty-two'),
      await upload('blob.bin', '', new Uint8Array([0, 1, 2])),
      await upload('data.json', 'application/json', '{"answer":"in JSON"}'),
    ]
    const attachments = [image, text, binary, data].map((id) => ({ file_id: id }))
    client.send({ type: 'message', content: 'what is it?', attachments })
    await client.next('response')
    const sent = JSON.stringify(stage.fake.requests.at(-1)?.body.messages?.at(-1)?.content)
    for (const part of ['what is it?', png, 'forty-two', 'note.txt', 'in JSON']) expect(sent).toContain(part)
    expect(sent).toMatch(/blob\.bin, application\/octet-stream, 3 bytes\. What it holds is not part of this message/)
    // Whoever shows the session again fetches the picture by this id.
    const { body } = await stage.host.json<{ messages: { images?: unknown }[] }>('GET', `/api/agents/${agent}/session`)
    expect(body.messages[0]?.images).toEqual([{ file_id: image, filename: 'dot.png', mime: 'image/png' }])
    await using other = await Client.open(await spawn())
    other.send({ type: 'message', content: 'mine?', attachments: [{ file_id: image }] })
    expect(await other.next('error')).toMatchObject({ code: 'file_not_found' })
  })
})

describe('a browser, when a key is set', () => {
  it('opens the socket with a ticket that works once', async () => {
    await using locked = await openChat({ config: { api_key: 'secret' } })
    const { body: agents } = await locked.host.json('GET', '/api/agents', undefined, { authorization: 'Bearer secret' })
    const url = `${locked.host.url.replace('http', 'ws')}/api/agents/${agents[0].id}/ws`
    const opens = (protocols: string[]) =>
      new Promise<boolean>((resolve) => {
        const socket = new WebSocket(url, protocols)
        socket.addEventListener('error', () => resolve(false))
        socket.addEventListener('message', ({ data }) => {
          socket.close()
          resolve(JSON.parse(String(data)).type === 'connected')
        })
      })
    expect(await opens(['svc'])).toBe(false)
    const { body } = await locked.host.json('POST', '/api/auth/ws-ticket', undefined, {
      authorization: 'Bearer secret',
    })
    expect(await opens(['svc', body.protocol])).toBe(true)
    expect(await opens(['svc', body.protocol])).toBe(false)
  })
})
