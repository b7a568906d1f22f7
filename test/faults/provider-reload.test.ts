import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat, parseEvents } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import { writePlugin } from '../support/plugin-folder.ts'

const STREAMS = 20
const WORDS = 30

/**
 * A provider in one file, as somebody would drop it. After its first word it waits until the test opens the gate of
 * its version.
 */
const acme = (version: string): string => `import * as v from 'valibot'
import { defineProvider } from 'svc/providers'

export default defineProvider('1.0.0', {
  name: 'acme', title: 'Acme', defaultModel: 'a-1', config: v.object({}),
  connect: () => ({
    async *complete(request: any, signal: AbortSignal) {
      for (let word = 0; word < ${WORDS}; word++) {
        signal.throwIfAborted()
        yield { type: 'text' as const, delta: (word === 0 ? '' : ' ') + '${version}' + word }
        if (word === 0) await (globalThis as any).acmeGates?.['${version}']
        await new Promise((resolve) => setImmediate(resolve))
      }
      yield { type: 'end' as const, stop: 'done' as const, usage: { input: 1, output: ${WORDS} } }
    },
    probe: async () => ({ model: 'a-1' }),
  }),
})
`
const said = (version: string): string => Array.from({ length: WORDS }, (_, word) => `${version}${word}`).join(' ')
const gates: Record<string, Promise<void>> = {}

interface Stream {
  readonly begun: Promise<void>
  readonly ended: Promise<{ readonly text: string; readonly provider: string; readonly error: string | undefined }>
}
function stream(stage: ChatStage, agent: string): Stream {
  const begun = Promise.withResolvers<void>()
  const read = async () => {
    const response = await stage.post(`/api/agents/${agent}/message/stream`, { message: 'go' })
    let text = ''
    for await (const piece of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      text += piece
      if (text.includes('event: chunk')) begun.resolve()
    }
    begun.resolve()
    const events = parseEvents(text)
    return {
      text: events
        .filter(({ event }) => event === 'chunk')
        .map(({ data }) => data.content)
        .join(''),
      provider: events.find(({ event }) => event === 'done')?.data.provider ?? '',
      error:
        events.find(({ event }) => event === 'error')?.data.error?.message ??
        events.find(({ event }) => event === 'error')?.data.error,
    }
  }
  return { begun: begun.promise, ended: read() }
}

describe('a provider in a file that is dropped, replaced and removed while the daemon serves', () => {
  let stage: ChatStage
  let file: string
  beforeAll(async () => {
    Object.assign(globalThis, { acmeGates: gates })
    stage = await openChat({ memory: true, config: { plugins: { watch: true } } })
    stage.fake.always({ text: 'other' })
    file = join(stage.host.home, 'plugins', 'acme.ts')
  })
  afterAll(() => stage[Symbol.asyncDispose]())
  const drop = (version: string): Promise<string> => writePlugin(join(file, '..'), acme(version), 'acme.ts')
  const agents = (name: string, count: number, manifest: string): Promise<string[]> =>
    Promise.all(Array.from({ length: count }, (_, index) => stage.spawn(`${name}-${index}`, [], manifest)))
  const own = '[model]\nprovider = "acme"\nmodel = "a-1"'
  const spare = '[[fallback_models]]\nprovider = "openai"\nmodel = "fake-1"\n'
  const message = (agent: string) => stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'hi' })

  it('is unknown before, and the refusal says what there is and what to do', async () => {
    const [agent = ''] = await agents('early', 1, own)
    const { status, body } = await message(agent)
    expect(status).toBe(503)
    expect(body.error.message).toMatch(/no provider "acme"\. There are: .*openai.*\[providers\.acme\] base_url/)
    const [spared = ''] = await agents('early-spared', 1, `${spare}${own}`)
    expect((await message(spared)).body).toMatchObject({ response: 'other', provider: 'openai' })
  })

  it('is usable by the next turn', async () => {
    await drop('one')
    await stage.host.plugin('provider-acme', 'loaded')
    const [agent = ''] = await agents('next', 1, own)
    expect((await message(agent)).body).toMatchObject({ response: said('one'), provider: 'acme', model: 'a-1' })
    expect((await stage.host.json('GET', '/api/providers/acme')).body).toMatchObject({
      name: 'acme',
      display_name: 'Acme',
      auth_status: 'no_key_needed',
    })
  })

  it(`is replaced under ${STREAMS} streams of its own and ${STREAMS} of another provider: each ends on the code it began with, and no turn in between fails`, async () => {
    const [mine, others, late] = await Promise.all([
      agents('mine', STREAMS, own),
      agents('other', STREAMS, '[model]\nprovider = "openai"\nmodel = "fake-1"'),
      agents('late', 5, own),
    ])
    const gate = Promise.withResolvers<void>()
    gates['one'] = gate.promise
    const otherGate = Promise.withResolvers<void>()
    stage.fake.always(() => ({
      text: (async function* () {
        yield 'other '
        await otherGate.promise
        yield 'ended'
      })(),
    }))
    const running = mine.map((agent) => stream(stage, agent))
    const beside = others.map((agent) => stream(stage, agent))
    await Promise.all([...running, ...beside].map(({ begun }) => begun))

    // Turns that come all the time, before, while and after it is replaced.
    let replaced = false
    const answers: string[] = []
    const steady = late.map(async (agent) => {
      for (let after = 0; after < 2; after += replaced ? 1 : 0) {
        gates['one'] = Promise.resolve()
        const { status, body } = await message(agent)
        answers.push(status === 200 ? body.response : `${status}: ${JSON.stringify(body)}`)
      }
    })
    await drop('two')
    await stage.host.plugin('provider-acme', 'loaded', ({ reloads }) => reloads === 1)
    replaced = true
    await Promise.all(steady)
    expect(answers.filter((answer) => answer !== said('one') && answer !== said('two'))).toEqual([])
    expect(answers.slice(-5)).toEqual(Array.from({ length: 5 }, () => said('two')))

    gate.resolve()
    otherGate.resolve()
    const ended = await Promise.all(running.map((one) => one.ended))
    expect(ended.filter(({ text, error }) => text !== said('one') || error !== undefined)).toEqual([])
    expect((await Promise.all(beside.map((one) => one.ended))).filter(({ text }) => text !== 'other ended')).toEqual([])
  })

  it('goes on with the old code when the new does not work', async () => {
    await writePlugin(
      join(file, '..'),
      "import { defineProvider } from 'svc/providers'\nexport default defineProvider(",
      'acme.ts',
    )
    await stage.host.plugin('provider-acme', 'loaded', ({ error }) => error !== undefined)
    const [agent = ''] = await agents('after-typo', 1, own)
    expect((await message(agent)).body.response).toBe(said('two'))
  })

  it('is removed under streams: they end, the next turn is answered by the fallback, or refused with what to do', async () => {
    const gate = Promise.withResolvers<void>()
    gates['two'] = gate.promise
    const running = (await agents('last', STREAMS, own)).map((agent) => stream(stage, agent))
    await Promise.all(running.map(({ begun }) => begun))
    await rm(file)
    await stage.host.plugin('provider-acme', 'gone')
    const [[spared = ''], [agent = '']] = await Promise.all([
      agents('spared', 1, `${spare}${own}`),
      agents('not-spared', 1, own),
    ])
    stage.fake.always({ text: 'other' })
    expect((await message(spared)).body).toMatchObject({ response: 'other', provider: 'openai', model: 'fake-1' })
    expect(await message(agent)).toMatchObject({
      status: 503,
      body: { error: { code: 'service_unavailable', message: expect.stringMatching(/no provider "acme"/) } },
    })
    gate.resolve()
    const ended = await Promise.all(running.map((one) => one.ended))
    expect(ended.filter(({ text, error }) => text !== said('two') || error !== undefined)).toEqual([])
  })

  it('comes back, and what is left of the old is nothing', async () => {
    gates['three'] = Promise.resolve()
    await drop('three')
    await stage.host.plugin('provider-acme', 'loaded')
    const [agent = ''] = await agents('back', 1, own)
    expect((await message(agent)).body.response).toBe(said('three'))
    expect(stage.host.defects()).toEqual([])
  })
})
