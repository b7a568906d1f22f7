import { publish } from 'ntfy'
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
  it('receives what the client of others publishes', async () => {
    await using stage = await openStage()
    const server = stage.fake.origin
    await publish({ server, topic: 'svc-test', message: 'from a client', authorization: stage.fake.token })
    expect((await stage.stage.test.waitForReceived(1))[0]?.text).toBe('from a client')
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
