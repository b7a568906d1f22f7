import { describe, expect, it } from 'vitest'
import type { CompletionRequest } from 'svc/providers'
import { encode } from '../../../adapters/providers/cohere/encode.ts'
import { collect, request } from '../../contract/provider.ts'
import { openCohere } from '../../support/cohere-stage.ts'
import type { Json } from '../../support/json.ts'

const encoded = (more: Partial<CompletionRequest>) =>
  JSON.parse(encode(request('hi', { model: 'command-a-03-2025', ...more }))) as Record<string, Json>

describe('Cohere', () => {
  it('its plan for the tools is thinking, and goes back with their results', async () => {
    await using stage = await openCohere()
    const asked = stage.play({ kind: 'calls', calls: [{ name: 'add', args: { a: 1 } }] })
    const events = await collect(stage.client, asked)
    expect(
      events
        .filter(({ type }) => type === 'thinking')
        .map((event) => (event.type === 'thinking' ? event.delta : ''))
        .join(''),
    ).toBe('I will use a tool')
    const end = events.at(-1)
    if (end?.type !== 'end' || end.replay === undefined) throw new Error('nothing to give back')
    const { messages } = encoded({
      turns: [
        ...asked.turns,
        { role: 'assistant', text: '', calls: [{ id: 'c', name: 'add', args: {} }], replay: end.replay },
        { role: 'tool', callId: 'c', tool: 'add', text: '', failed: false },
      ],
    })
    expect(messages.at(-2)).toEqual({
      role: 'assistant',
      tool_plan: 'I will use a tool',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'add', arguments: '{}' } }],
    })
  })
  it('only models that can think are told whether to', () => {
    expect(encoded({ thinking: true }).thinking).toBeUndefined()
    expect(encoded({ thinking: true, model: 'command-a-reasoning-08-2025' }).thinking).toEqual({ type: 'enabled' })
    expect(encoded({ thinking: false, model: 'command-a-reasoning-08-2025' }).thinking).toEqual({ type: 'disabled' })
  })
  it('a form for the answer is asked for where no tools are', () => {
    const responseFormat = { type: 'json_schema' as const, name: 'x', schema: { type: 'object' } }
    expect(encoded({ responseFormat }).response_format).toBeUndefined()
    expect(encoded({ responseFormat, tools: [] }).response_format).toEqual({
      type: 'json_object',
      json_schema: { type: 'object' },
    })
  })
  it('a question is embedded as one', async () => {
    await using stage = await openCohere()
    for (const purpose of ['query', 'document'] as const) {
      stage.play({ kind: 'embed', vectors: [[1]] })
      await stage.client.embed?.({ model: 'embed-v4.0', texts: ['x'], purpose }, new AbortController().signal)
      expect(stage.fake.calls.at(-1)?.body).toMatchObject({ input_type: `search_${purpose}` })
    }
  })
  it('every page of its models is read', async () => {
    await using stage = await openCohere()
    expect(await stage.client.models?.(new AbortController().signal)).toEqual([
      'command-a-03-2025',
      'command-r7b-12-2024',
    ])
  })
})
