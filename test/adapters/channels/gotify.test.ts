import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/gotify/adapter.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { FakeGotify } from '../../support/platforms/gotify.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeGotify.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

describe('gotify', () => {
  it('names the application that sent a message, and answers as its own', async () => {
    await using it = await openStage({ title: 'Helper', priority: 8 })
    await it.fake.deliver({ text: 'somebody rang' })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({
      text: 'somebody rang',
      sender: { id: '7', name: 'Front door' },
      chat: { id: '7', kind: 'direct', title: 'Front door' },
    })
    it.fake.alert('Disk full', 'at the office')
    expect((await it.stage.test.waitForReceived(2))[1]?.text).toBe('Disk full\n\nat the office')
    await it.stage.connection.send(it.stage.message('**open**'))
    const url = `${it.fake.origin}/message?limit=1`
    const headers = ['-H', `X-Gotify-Key: ${it.fake.config.client_token}`]
    const { stdout } = await promisify(execFile)('curl', ['-fsS', ...headers, url])
    expect(JSON.parse(stdout).messages).toMatchObject([
      {
        appid: 3,
        title: 'Helper',
        priority: 8,
        message: '**open**',
        extras: { 'client::display': { contentType: 'text/markdown' } },
      },
    ])
  })

  it('reads what was there before the first start as history', async () => {
    const fake = await FakeGotify.start()
    await fake.deliver({ text: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.deliver({ text: 'new' })
    expect((await stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['new'])
    await stage.reopen()
    await fake.deliver({ text: 'newer' })
    expect((await stage.test.waitForReceived(2)).map(({ text }) => text)).toEqual(['new', 'newer'])
  })

  it('reads several pages of what came while it was away, in order', async () => {
    await using it = await openStage()
    await it.fake.disconnect()
    for (let index = 0; index < 450; index++) await it.fake.deliver({ text: `m${index}` })
    await it.stage.reopen()
    const received = await it.stage.test.waitForReceived(450)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 450 }, (_, index) => `m${index}`))
  })

  it('looks for a message that may have been sent before it sends it again', async () => {
    await using it = await openStage()
    const message = it.stage.message('once')
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(message)).rejects.toThrow('closed the connection')
    expect(await it.stage.connection.send({ ...message, mayBeSent: true })).toEqual({ id: '1', wasSentBefore: true })
    expect(it.fake.sent).toHaveLength(1)
    const other = { ...it.stage.message('another'), mayBeSent: true }
    expect(await it.stage.connection.send(other)).toEqual({ id: '2' })
  })

  it('takes a client token that may not read for one that has to be changed', async () => {
    const fake = await FakeGotify.start()
    await using stage = new ChannelStage(adapter, fake, fake.wrongConfig)
    await expect(stage.open()).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
  })

  it('reads what came while it was away although it is too long for one answer, up to a limit', async () => {
    await using it = await openStage()
    await it.fake.disconnect?.()
    for (let at = 0; at < 12; at++) it.fake.alert('', `${at} ${'x'.repeat(4_000_000)}`)
    await it.stage.reopen()
    const received = await it.stage.test.waitForReceived(9)
    expect(received.map(({ text }) => text.slice(0, 2).trim())).toEqual(['3', '4', '5', '6', '7', '8', '9', '10', '11'])
    expect(it.stage.test.logged.join('\n')).toContain('older ones are left out')
  })

  it('leaves out a frame that is no message, and goes on', async () => {
    await using it = await openStage()
    it.fake.sendFrame({ id: 'x' })
    await it.fake.deliver({ text: 'after' })
    expect((await it.stage.test.waitForReceived(1))[0]?.text).toBe('after')
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })
})
