import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/flock/adapter.ts'
import { FlockConfig } from '../../../adapters/channels/flock/config.ts'
import { decodeEvent } from '../../../adapters/channels/flock/decode.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { testHostileInput } from '../../support/hostile-input.ts'
import { FakeFlock } from '../../support/platforms/flock.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeFlock.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

const decode = (raw: unknown) => decodeEvent(raw, { eventId: 'e', now: Date.parse('2026-11-20T12:00:00Z') })
const download = { src: 'https://x.test/a', filename: 'n', mime: 'a/b', size: 1 }
const message = {
  from: 'u:1',
  to: 'u:2',
  uid: 'x',
  id: 'y',
  text: 'hi',
  timestamp: 1,
  attachments: [{ downloads: [download] }],
}

testHostileInput('flock', { name: 'chat.receiveMessage', userId: 'u:1', message }, decode)
testHostileInput(
  'flock, a command',
  {
    name: 'client.slashCommand',
    userId: 'u:1',
    userName: 'Ada',
    chat: 'g:1',
    chatName: 'x',
    command: 'ask',
    text: 'hi',
  },
  decode,
)

describe('flock', () => {
  it('takes a command in a channel for a message of it, and answers there on behalf of a member', async () => {
    await using it = await openStage()
    await it.fake.post(it.fake.signed(it.fake.command({ userName: 'A\u202eda' })))
    const [received] = await it.stage.test.waitForReceived(1)
    expect(received).toMatchObject({
      chat: { id: 'g:general', kind: 'group', title: 'General' },
      sender: { id: it.fake.person, name: 'A\u202eda' },
      text: 'for coffee',
      mentionsBot: true,
    })
    await it.stage.connection.send(it.stage.message('soon', { to: { chatId: 'g:general' } }))
    expect(it.fake.sent[0]).toMatchObject({ chatId: 'g:general', text: 'soon' })
    expect(it.fake.violations).toEqual([])
  })

  it('answers a command in a chat of two people in the chat of the bot', async () => {
    await using it = await openStage()
    await it.fake.post(it.fake.signed(it.fake.command({ chat: 'u:somebody', text: '' })))
    const [received] = await it.stage.test.waitForReceived(1)
    expect(received).toMatchObject({ chat: { id: it.fake.person, kind: 'direct' }, text: '/ask' })
  })

  it('tells commands apart, and drops one that comes again', async () => {
    await using it = await openStage()
    const once = it.fake.signed(it.fake.command())
    for (const request of [once, once, it.fake.signed(it.fake.command())]) await it.fake.post(request)
    expect(it.stage.test.deliveries).toBe(3)
    expect(it.stage.test.received).toHaveLength(2)
  })

  it('takes nobody for another one than the token vouches for', async () => {
    await using it = await openStage()
    const event = it.fake.received('x', 'not mine')
    await it.fake.post(it.fake.signed({ ...event, message: { ...event.message, from: 'u:eve' } }))
    await it.fake.post(it.fake.signed({ name: 'app.install', userId: it.fake.person, token: 'x' }))
    expect(it.stage.test.deliveries).toBe(0)
  })

  it('needs on_behalf_of for channels, and the secret in any case', async () => {
    const fake = await FakeFlock.start()
    const { on_behalf_of: _, ...config } = fake.config
    await using stage = new ChannelStage(adapter, fake, config)
    await stage.open()
    const send = () => stage.connection.send(stage.message('x', { to: { chatId: 'g:general' } }))
    expect(await stage.failureOf(send)).toMatchObject({
      retry: 'never',
      message: 'Messages to channels of Flock need on_behalf_of',
    })
    for (const secret of ['', undefined]) expect(v.is(FlockConfig, { ...config, app_secret: secret })).toBe(false)
    expect(v.is(FlockConfig, config)).toBe(true)
  })

  it('sends the token to the API alone, never in an address', async () => {
    await using it = await openStage()
    const file = { kind: 'file' as const, name: 'a.txt', mime: 'text/plain', bytes: Buffer.from('a') }
    await it.fake.deliver({ text: 'a file', files: [file] })
    const [received] = await it.stage.test.waitForReceived(1)
    const reference = received?.attachments[0]?.reference ?? {}
    const read = async (given: object) => it.stage.connection.readAttachment?.({ ...given }, AbortSignal.timeout(5000))
    expect(await read(reference)).toBeDefined()
    await expect(read({ url: 'file:///etc/passwd' })).rejects.toThrow()
    expect(it.fake.violations).toEqual([])
  })
})
