import { describe, expect, it } from 'vitest'
import type { CompletionRequest } from 'svc/providers'
import { createClient } from '../../../adapters/providers/replicate/client.ts'
import { inputOf } from '../../../adapters/providers/replicate/prompt.ts'
import { collect, request, textOf } from '../../contract/provider.ts'
import { openReplicate } from '../../support/replicate-stage.ts'

const user = (text: string): CompletionRequest['turns'][number] => ({ role: 'user', parts: [{ type: 'text', text }] })

describe('Replicate', () => {
  it('one question goes as it is, a conversation with its speakers', () => {
    expect(inputOf(request('hi', { maxTokens: 5 }))).toEqual({
      prompt: 'hi',
      system_prompt: 'You are a test.',
      max_tokens: 5,
    })
    const turns: CompletionRequest['turns'] = [
      user('a'),
      { role: 'assistant', text: 'b', calls: [{ id: 'c', name: 'add', args: { a: 1 } }] },
      { role: 'tool', callId: 'c', tool: 'add', text: '3', failed: false },
      user('d'),
    ]
    expect(inputOf(request('', { turns, system: '' })).prompt).toBe(
      'User: a\n\nAssistant: b\n[calls add {"a":1}]\n\nResult of add: 3\n\nUser: d\n\nAssistant:',
    )
  })
  it('lines and blanks of an answer are kept', async () => {
    await using stage = await openReplicate()
    expect(
      textOf(await collect(stage.client, stage.play({ kind: 'text', deltas: ['one\n', '\n two', ' ', '\n'] }))),
    ).toBe('one\n\n two \n')
  })
  it('a prediction that nobody waits for is cancelled, one that is over is not', async () => {
    await using stage = await openReplicate()
    for await (const _ of stage.client.complete(
      stage.play({ kind: 'held', deltas: ['x'] }),
      new AbortController().signal,
    ))
      break
    expect(stage.fake.cancelled).toEqual(['p0'])
    await collect(stage.client, stage.play({ kind: 'text', deltas: ['x'] }))
    await expect(
      collect(stage.client, stage.play({ kind: 'status', status: 400, about: 'context_length' })),
    ).rejects.toThrow()
    expect(stage.fake.cancelled).toEqual(['p0'])
  })
  it('a model that does not stream is asked until it is over', async () => {
    await using stage = await openReplicate({ streams: false, polls: 1 })
    const events = await collect(stage.client, stage.play({ kind: 'text', deltas: ['a', 'b'], usage: 'detailed' }))
    expect(events).toEqual([
      { type: 'text', delta: 'ab' },
      { type: 'end', stop: 'done', usage: { input: 100, output: 50 } },
    ])
    await expect(
      collect(stage.client, stage.play({ kind: 'status', status: 400, about: 'content_filter' })),
    ).rejects.toMatchObject({ reason: 'content_filter' })
  })
  it('a version is named after a colon, and a name that is none is refused', async () => {
    await using stage = await openReplicate()
    await collect(stage.client, { ...stage.play({ kind: 'text', deltas: ['x'] }), model: 'meta/llama:0123abc' })
    expect(stage.fake.creations[0]?.url.pathname).toBe('/v1/predictions')
    expect(stage.fake.creations[0]?.body).toMatchObject({ version: '0123abc', stream: true })
    await expect(collect(stage.client, { ...request('hi'), model: 'llama' })).rejects.toMatchObject({
      reason: 'not_found',
      message: expect.stringContaining('owner/name'),
    })
  })
  it('the key stays with Replicate, and nobody else is called in its name', async () => {
    const calls: { url: string; headers: Readonly<Record<string, string>> }[] = []
    const answer = (body: object) => ({
      status: 200,
      ok: true,
      url: '',
      header: () => 'application/json',
      chunks: async function* () {
        yield new Uint8Array()
      },
      text: async () => JSON.stringify(body),
      json: async () => body,
      bytes: async () => new Uint8Array(),
      toResponse: () => new Response(),
    })
    const client = (stream: string) =>
      createClient(
        {
          name: 'replicate',
          config: {},
          baseUrl: 'https://api.replicate.com/v1',
          apiKey: async () => 'r8_secret',
          fetch: async (url, options) => {
            calls.push({ url: String(url), headers: options?.headers ?? {} })
            return answer({
              id: 'p',
              status: 'starting',
              urls: { get: 'https://api.replicate.com/v1/predictions/p', stream },
            })
          },
        },
        'm',
      )
    await expect(
      collect(client('https://stream.replicate.com/v1/p'), { ...request('hi'), model: 'a/b' }),
    ).rejects.toThrow()
    expect(calls.map(({ headers }) => 'authorization' in headers)).toEqual([true, false])
    await expect(collect(client('http://169.254.169.254/latest'), { ...request('hi'), model: 'a/b' })).rejects.toThrow(
      'which is not its own',
    )
    expect(calls).toHaveLength(3)
  })
})
