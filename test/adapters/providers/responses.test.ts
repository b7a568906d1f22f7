import { describe, expect, it } from 'vitest'
import type { CompletionRequest } from 'svc/providers'
import { collect, request } from '../../contract/provider.ts'
import { openResponses } from '../../support/responses-stage.ts'

const text = { kind: 'text', deltas: ['fine'] } as const

describe('the Responses API', () => {
  async function sent(more: Partial<CompletionRequest>, model = 'gpt-5.3-codex'): Promise<unknown> {
    await using stage = await openResponses(model)
    await collect(stage.client, { ...stage.play(text), ...more })
    return stage.fake.asked[0]?.body
  }

  it('stores nothing there and asks for what was thought, sealed', async () => {
    expect(await sent({})).toMatchObject({
      store: false,
      stream: true,
      include: ['reasoning.encrypted_content'],
      instructions: 'You are a test.',
    })
    expect(await sent({}, 'gpt-4.1')).not.toHaveProperty('include')
  })
  it('says how much is to be thought, and summarizes it only for one who asked', async () => {
    expect(await sent({ thinking: true })).toMatchObject({ reasoning: { effort: 'high', summary: 'auto' } })
    expect(await sent({ thinking: false })).toMatchObject({ reasoning: { effort: 'low' } })
    expect(await sent({})).not.toHaveProperty('reasoning')
  })
  it('gives a temperature only to models that take one', async () => {
    expect(await sent({ temperature: 0.3 })).not.toHaveProperty('temperature')
    expect(await sent({ temperature: 0.3 }, 'gpt-4.1')).toMatchObject({ temperature: 0.3 })
  })
  it('asks for an answer of a form', async () => {
    const schema = { type: 'object', properties: {} }
    expect(await sent({ responseFormat: { type: 'json_schema', name: 'answer', schema, strict: true } })).toMatchObject(
      { text: { format: { type: 'json_schema', name: 'answer', schema, strict: true } } },
    )
    expect(await sent({ responseFormat: { type: 'json' } })).toMatchObject({
      text: { format: { type: 'json_object' } },
    })
  })
  it('gives back what was thought before the words and calls it led to', async () => {
    await using stage = await openResponses()
    const asked = {
      ...stage.play({ kind: 'calls', calls: [{ name: 'add', args: { a: 1 } }], thinking: ['hm'] }),
      thinking: true,
    }
    const events = await collect(stage.client, asked)
    const end = events.at(-1)
    const call = events.flatMap((event) => (event.type === 'call' ? [event.call] : []))
    const turns: CompletionRequest['turns'] = [
      ...request('go on').turns,
      {
        role: 'assistant',
        text: 'I look.',
        calls: call,
        ...(end?.type === 'end' && end.replay !== undefined && { replay: end.replay }),
      },
      { role: 'tool', callId: call[0]?.id ?? '', tool: 'add', text: '3', failed: false },
    ]
    await collect(stage.client, { ...asked, ...stage.play(text), turns })
    expect(stage.fake.asked[1]?.body).toMatchObject({
      input: [
        { role: 'user' },
        {
          type: 'reasoning',
          id: 'rs_0',
          encrypted_content: 'sealed-by-the-vendor',
          summary: [{ type: 'summary_text', text: 'hm' }],
        },
        { role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
        { type: 'function_call', call_id: 'call_0x', name: 'add', arguments: '{"a":1}' },
        { type: 'function_call_output', call_id: 'call_0x', output: '3' },
      ],
    })
  })
})
