import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startFakeAnthropic } from '../../support/fake-anthropic.ts'
import type { FakeAnthropic } from '../../support/fake-anthropic.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const MODEL = 'claude-sonnet-4-5-20250929'
let fake: FakeAnthropic
let home: string
beforeEach(async () => {
  fake = await startFakeAnthropic()
  home = await mkdtemp(join(tmpdir(), 'svc-thinking-'))
})
afterEach(async () => {
  await fake[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const open = (): Promise<TestHost> =>
  startHost({
    home,
    config: {
      default_provider: 'anthropic',
      default_model: MODEL,
      providers: { anthropic: { base_url: fake.origin, api_key: 'test-key' } },
      plugins: { drain_ms: 50, providers: { tries: 2, back_off_min_ms: 1, back_off_max_ms: 5 } },
    },
  })
async function spawn(host: TestHost, more = ''): Promise<string> {
  const manifest_toml = [
    `name = "thinker"`,
    `${more}`,
    `[model]`,
    `max_tokens = 4000`,
    `[thinking]`,
    `enabled = true`,
    `[capabilities]`,
    `tools = ["*"]`,
    ``,
  ].join('\n')
  const { status, body } = await host.json('POST', '/api/agents', { manifest_toml })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.agent_id
}
/** The kinds of blocks of every answer of the model that the last request held. */
const answers = (): string[][] =>
  (fake.asked.at(-1)?.['messages'] ?? []).flatMap(({ role, content }: { role: string; content: { type: string }[] }) =>
    role === 'assistant' ? [content.map(({ type }) => type)] : [],
  )

describe('thinking of a model that signs it', () => {
  it('goes back with the results of its calls for as long as the turn lasts, however many steps it has', async () => {
    await using host = await open()
    const agent = await spawn(host)
    fake.script(
      { thinking: ['First ', 'this.'], redacted: 'hidden', calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] },
      {
        thinking: ['Now that.'],
        text: ['One more.'],
        calls: [
          { name: 'kv_get', args: { key: 'a' } },
          { name: 'kv_get', args: { key: 'b' } },
        ],
      },
      {
        thinking: ['Done.'],
        text: ['It is 1.'],
        usage: {
          input_tokens: 5,
          output_tokens: 50,
          cache_read_input_tokens: 90,
          cache_creation_input_tokens: 5,
          output_tokens_details: { thinking_tokens: 30 },
        },
      },
    )
    const { status, body } = await host.json('POST', `/api/agents/${agent}/message`, { message: 'set and get' })
    expect([status, body.response]).toEqual([200, 'One more.\n\nIt is 1.'])
    expect(fake.asked[0]?.['thinking']).toEqual({ type: 'enabled', budget_tokens: 3000 })
    // The fake has checked each signature; a changed or missing one is refused.
    expect(answers()).toEqual([
      ['redacted_thinking', 'thinking', 'tool_use'],
      ['thinking', 'text', 'thinking', 'tool_use', 'tool_use'],
    ])

    fake.script({ thinking: ['Again.'], text: ['Hello.'] })
    expect((await host.json('POST', `/api/agents/${agent}/message`, { message: 'and now?' })).status).toBe(200)
    expect(answers()).toEqual([['tool_use'], ['text', 'tool_use', 'tool_use'], ['text']])
    // What was thought is shown; what the provider wants back is nobody's to read.
    const shown = JSON.stringify((await host.json('GET', `/api/agents/${agent}/session`)).body)
    expect(shown).toContain('One more.')
    expect(shown).toContain('"thinking":"First this."')
    expect(shown).not.toMatch(/signature|redacted/)
  })

  it('is not asked for when it is off for the agent or for the message', async () => {
    await using host = await open()
    const agent = await spawn(host)
    expect((await host.json('POST', `/api/agents/${agent}/message`, { message: 'hi', thinking: false })).status).toBe(
      200,
    )
    expect(fake.asked.at(-1)).not.toHaveProperty('thinking')
    const plain = (
      await host.json('POST', '/api/agents', { manifest_toml: 'name = "plain"\n[thinking]\nenabled = false\n' })
    ).body.agent_id
    expect((await host.json('POST', `/api/agents/${plain}/message`, { message: 'hi' })).status).toBe(200)
    expect(fake.asked.at(-1)).not.toHaveProperty('thinking')
  })

  it('is given to nobody else when the turn falls back to another model', async () => {
    await using host = await open()
    const agent = await spawn(host, '[[fallback_models]]\nprovider = "anthropic"\nmodel = "claude-haiku-5-5"')
    fake.script(
      { thinking: ['Mine.'], calls: [{ name: 'kv_get', args: { key: 'a' } }] },
      { status: 529 },
      { status: 529 },
      { thinking: ['Other.'], text: ['Nothing there.'] },
    )
    const { body } = await host.json('POST', `/api/agents/${agent}/message`, { message: 'look' })
    expect(body.response).toBe('Nothing there.')
    expect(fake.asked.at(-1)).toMatchObject({ model: 'claude-haiku-5-5', thinking: { type: 'adaptive' } })
    expect(answers()).toEqual([['tool_use']])
  })

  it('is there after a restart, and after the chat and the driver were replaced', async () => {
    let agent = ''
    const pending = async (host: TestHost): Promise<string> => {
      const find = async () =>
        (await host.json('GET', '/api/approvals')).body.approvals.find(
          (each: { agent_id: string; status: string }) => each.agent_id === agent && each.status === 'pending',
        )
      await expect.poll(find).toBeDefined()
      return (await find()).id
    }
    {
      await using host = await open()
      agent = await spawn(host, '[metadata]\napproval = "always"')
      fake.script({
        thinking: ['Careful ', 'now.'],
        text: ['I set it.'],
        calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }],
      })
      const gone = host.json('POST', `/api/agents/${agent}/message`, { message: 'set it' }).catch(() => undefined)
      await pending(host)
      await host.app.host.reload('provider-anthropic')
      await host.app.host.reload('chat')
      await pending(host)
      await host.stop()
      await gone
    }
    await using host = await open()
    fake.script({ text: ['It is set.'] })
    await host.json('POST', `/api/approvals/${await pending(host)}/approve`)
    await expect
      .poll(async () => (await host.json('GET', `/api/agents/${agent}/session`)).body.messages.at(-1)?.content)
      .toContain('It is set.')
    expect(answers()).toEqual([['thinking', 'text', 'thinking', 'tool_use']])
    expect(fake.asked.at(-1)?.['messages'][1].content[0]).toMatchObject({ type: 'thinking', thinking: 'Careful now.' })
  })
})
