import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/ntfy/adapter.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { FakeNtfy } from '../../support/platforms/ntfy.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeNtfy.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

describe('ntfy', () => {
  it('receives what is published with curl, as the documentation of ntfy shows it', async () => {
    await using stage = await openStage()
    const { origin, token } = stage.fake
    const headers = ['-H', `Authorization: Bearer ${token}`, '-H', 'Title: Backup', '-H', 'Tags: warning,skull']
    await promisify(execFile)('curl', ['-fsS', ...headers, '-d', 'from a shell', `${origin}/svc-test`])
    expect((await stage.stage.test.waitForReceived(1))[0]).toMatchObject({
      text: 'from a shell',
      sender: { name: 'Backup', isUnverified: true },
    })
  })

  it('does not take its own messages for questions after a restart', async () => {
    await using stage = await openStage()
    await stage.fake.deliver({ text: 'question' })
    await stage.stage.test.waitForReceived(1)
    await stage.fake.disconnect()
    stage.fake.fail({ kind: 'lost_answer' })
    await expect(stage.stage.connection.send(stage.stage.message('answer'))).rejects.toThrow('closed the connection')
    await stage.stage.reopen()
    await stage.fake.deliver({ text: 'next' })
    expect((await stage.stage.test.waitForReceived(2)).map(({ text }) => text)).toEqual(['question', 'next'])
  })

  it('writes its position down when the stream ends, and not with each message', async () => {
    await using stage = await openStage()
    const { test } = stage.stage
    const before = test.state.get('since')
    for (const text of ['one', 'two']) await stage.fake.deliver({ text })
    await test.waitForReceived(2)
    expect(test.state.get('since')).toBe(before)
    await stage.stage.reopen()
    const last = await stage.fake.deliver({ text: 'three' })
    await test.waitForReceived(3)
    expect(test.deliveries).toBe(3)
    await stage.stage.connection[Symbol.asyncDispose]()
    expect(test.state.get('since')).toBe(last)
  })

  it('answers in the other topic, where there is one', async () => {
    await using stage = await openStage({ reply_topic: 'answers' })
    await stage.stage.connection.send(stage.stage.message('hi'))
    expect(stage.fake.sent[0]?.chatId).toBe('answers')
  })

  it('reads no file from another server', async () => {
    await using stage = await openStage()
    const reference = { url: 'http://169.254.169.254/latest' }
    const read = stage.stage.connection.readAttachment?.(reference, AbortSignal.timeout(1000))
    await expect(read).rejects.toThrow('on another server than the topic')
  })
})
