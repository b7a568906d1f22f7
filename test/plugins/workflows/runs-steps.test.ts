import { Refusal } from 'svc/sdk'
import { describe, expect, it } from 'vitest'
import type { ChannelMessages } from '../../../plugins/channels/contract.ts'
import type { StepCall } from '../../../plugins/workflows/contract.ts'
import { approvalStep } from '../../../plugins/workflows/runs/steps/approval.ts'
import { agentStep } from '../../../plugins/workflows/runs/steps/agent.ts'
import { httpStep } from '../../../plugins/workflows/runs/steps/http.ts'
import { toolStep } from '../../../plugins/workflows/runs/steps/tool.ts'

const KEY = '0198c5a0-7e1c-5cc3-98c4-dc0c0c07398f'
/** An attempt that was cut off by a crash. */
const cutOff = (given: Record<string, unknown>): StepCall => ({
  runId: 'run',
  workflowName: 'release',
  step: 'one',
  key: KEY,
  attempt: 1,
  with: given,
  input: '',
  variables: {},
  agentId: 'agent',
  asker: undefined,
  labels: [],
  hops: 0,
  wasCutOff: true,
  state: undefined,
  signal: new AbortController().signal,
})
const unused = (): never => {
  throw new Error('not expected')
}

describe('after a crash', () => {
  it('an agent is not asked again: the turn with the id of the attempt is followed', async () => {
    const ids: string[] = []
    const step = agentStep({
      turns: {
        ensure({ id }) {
          ids.push(id)
          const result = { text: 'answer', usage: { input: 1, output: 2 }, costUsd: 0.1, stop: 'done' }
          return Promise.resolve({ events: unused, result: () => Promise.resolve(result as never) })
        },
      },
      chat: { cancel: unused },
      sessions: { ensure: () => [] },
      db: { batch: () => Promise.resolve([]) },
    })
    const end = { outcome: 'done', output: 'answer', inputTokens: 1, outputTokens: 2, costUsd: 0.1 }
    expect(await step.run(cutOff({ prompt: 'x' }))).toEqual(end)
    expect(ids).toEqual([KEY])
  })

  it.each([
    ['GET', {}, true],
    ['PUT', {}, true],
    ['DELETE', {}, true],
    ['POST', {}, false],
    ['PATCH', {}, false],
    ['POST', { repeatable: true }, true],
  ])('%s with %o: sent again is %s, with the same key', async (method, more, isSent) => {
    const keys: unknown[] = []
    const step = httpStep({
      fetch(_, request) {
        keys.push(request?.headers?.['idempotency-key'])
        return Promise.resolve({ ok: true, text: () => Promise.resolve('ok') } as never)
      },
      agents: { require: () => Promise.resolve({ manifest: { capabilities: { network: ['*'] } } } as never) },
      maxBytes: 1_000,
    })
    const end = await step
      .run(cutOff({ url: 'https://example.com/', method, ...more }))
      .catch((error: Error) => error.name)
    expect(end).toEqual(isSent ? { outcome: 'done', output: 'ok' } : 'OutcomeUnknown')
    expect(keys).toEqual(isSent ? [KEY] : [])
  })

  it('a tool is not called again when nobody knows whether it acted', async () => {
    const ids: string[] = []
    const step = toolStep({
      toolCalls: {
        call({ id }) {
          ids.push(id)
          return Promise.resolve({ outcome: 'unknown' })
        },
      },
    })
    await expect(step.run(cutOff({ tool: 'act' }))).rejects.toMatchObject({ name: 'OutcomeUnknown' })
    expect(ids).toEqual([KEY])
  })
})

describe('an approval that nobody answers', () => {
  const ESCALATE = [
    { after_secs: 90, channel: 'email', to: 'ceo@example.com' },
    { after_secs: 10, channel: 'telegram', to: '1' },
    { after_secs: 20, channel: 'email', to: 'boss@example.com' },
  ]
  /** Asked 30 seconds ago. */
  function approval(send?: ChannelMessages['send']) {
    const noted: unknown[] = []
    const warnings: string[] = []
    const pending = {
      id: KEY,
      state: 'pending',
      requestedAt: new Date(Date.now() - 30_000).toISOString(),
      expiresAt: new Date(Date.now() + 600_000).toISOString(),
    }
    const step = approvalStep({
      agents: { find: () => Promise.resolve(undefined) },
      approvals: () => ({
        find: () => Promise.resolve(pending as never),
        noteAsked: (id, { channel }) => Promise.resolve(void noted.push([id, channel])),
        request: unused,
      }),
      channels: () => send && { send },
      log: { warn: (text: string) => void warnings.push(text) },
    })
    const call = cutOff({ prompt: 'Publish?', timeout_secs: 630, escalate: ESCALATE })
    return { noted, warnings, run: (state?: unknown) => step.run({ ...call, state }) }
  }

  it('is brought to the next person, each once, in the order of the times', async () => {
    const sent: unknown[] = []
    const { noted, run } = approval(({ channel, to, text }) => Promise.resolve(void sent.push([channel, to, text])))
    expect(await run()).toMatchObject({ outcome: 'waiting', state: { asked: 2 } })
    const question: unknown = expect.stringContaining(`/approve ${KEY}`)
    expect(sent).toEqual([
      ['telegram', '1', question],
      ['email', 'boss@example.com', question],
    ])
    // Whoever is asked may answer there.
    expect(noted).toEqual([
      [KEY, 'telegram'],
      [KEY, 'email'],
    ])
    expect(await run({ asked: 2 })).toMatchObject({ state: { asked: 2 } })
    expect(sent).toHaveLength(2)
  })

  it('goes on to the others when a chat is gone, and tells the operator', async () => {
    const { warnings, run } = approval(({ channel }) =>
      channel === 'telegram'
        ? Promise.reject(new Refusal('channel_not_found', 'There is no channel "telegram"'))
        : Promise.resolve(),
    )
    expect(await run()).toMatchObject({ outcome: 'waiting', state: { asked: 2 } })
    expect(warnings).toEqual(['step "one" of run run cannot ask telegram chat 1: There is no channel "telegram"'])
  })

  it.each([
    ['the outbox is full', () => Promise.reject(new Refusal('rate_limit', 'full'))],
    ['no plugin sends messages', undefined],
  ])('asks again later when %s', async (_, send) => {
    expect(await approval(send).run()).toMatchObject({ outcome: 'waiting', state: { asked: 0 } })
  })
})
