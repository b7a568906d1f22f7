import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

const promtool = '/usr/bin/promtool'
let stage: ChatStage
let text: string
beforeAll(async () => {
  stage = await openChat()
  const agent = await stage.spawn('counted')
  stage.fake.script(
    {
      calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }],
      usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
    },
    { text: 'done', usage: { prompt_tokens: 130, completion_tokens: 5, total_tokens: 135 } },
  )
  await stage.post(`/api/agents/${agent}/message`, { message: 'keep it' })
  await stage.host.fetch('/api/not/there')
  text = await (await stage.host.fetch('/api/metrics')).text()
})
afterAll(() => stage[Symbol.asyncDispose]())

describe('the metrics of a daemon that worked', () => {
  it('count tokens, calls and tools by agent', () => {
    expect(text).toMatch(/^svc_tokens_total\{agent="counted",model="fake-1",provider="openai"\} 255$/m)
    expect(text).toMatch(/^svc_llm_calls_total\{agent="counted"\} 2$/m)
    expect(text).toMatch(/^svc_tool_calls_total\{agent="counted",outcome="done"\} 1$/m)
    expect(text).toMatch(/^svc_active_sessions 0$/m)
    expect(text).toMatch(/^svc_cost_usd_today \d/m)
    expect(text).toMatch(/^svc_http_requests_total\{[^}]*\} [1-9]/m)
  })

  it('count what failed at a provider, each try, by reason', async () => {
    const agent = await stage.spawn('unlucky')
    stage.fake.script({ status: 400, body: '{"error":{"message":"no"}}' })
    await stage.post(`/api/agents/${agent}/message`, { message: 'try' })
    expect(await (await stage.host.fetch('/api/metrics')).text()).toMatch(
      /^svc_llm_provider_errors_total\{provider="openai",reason="invalid_request"\} 1$/m,
    )
  })
  it.skipIf(!existsSync(promtool))('are accepted by the linter of Prometheus', () => {
    const { status, stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], { input: text, encoding: 'utf8' })
    expect([status, stdout, stderr]).toEqual([0, '', ''])
  })
})
