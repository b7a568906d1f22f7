import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/pumble/adapter.ts'
import { decodeCommand, decodeMessage, decodePress } from '../../../adapters/channels/pumble/decode.ts'
import * as wire from '../../../adapters/channels/pumble/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakePumble } from '../../support/platforms/pumble.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakePumble.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

const NOW = Date.parse('2026-11-20T12:00:00Z')
const around = { botId: 'b' }
const message = {
  mId: 'm',
  wId: 'w',
  cId: 'c',
  trId: 't',
  aId: 'a',
  tx: '<<@b>> hi',
  st: '',
  tsm: 1,
  f: [],
  md: ['b'],
  e: true,
  eph: false,
}
const trigger = { userId: 'a', channelId: 'c', triggerId: 't' }

testHostileInput(
  'pumble',
  message,
  parsed(wire.Posted, (posted) => decodeMessage(posted, { ...around, files: posted.f ?? [] }, true)),
)
testHostileInput('pumble, a file', { id: 'f', name: 'n', mimeType: 'a/b', path: 'https://x.test', size: 1 }, (file) =>
  decodeMessage(message as unknown as wire.Posted, { ...around, files: [file] }, false),
)
testHostileInput(
  'pumble, a command',
  { ...trigger, messageType: 'SLASH_COMMAND', slashCommand: '/ask', text: 'hi', threadRootId: 'r' },
  parsed(wire.SlashCommand, (command) => decodeCommand(command, around, NOW)),
)
testHostileInput(
  'pumble, a button',
  {
    ...trigger,
    messageType: 'BLOCK_INTERACTION',
    sourceType: 'MESSAGE',
    sourceId: 'm',
    onAction: 'svc',
    payload: '{"value":"yes"}',
  },
  parsed(wire.Interaction, (press) => decodePress(press, around, NOW)),
)

describe('pumble', () => {
  it('looks up channels and people once, and tells who wrote', async () => {
    await using it = await openStage()
    const threadId = it.fake.chats.thread
    await it.fake.deliver({ text: 'one', threadId, mentionsBot: true })
    await it.fake.deliver({ text: 'two', isGroup: true })
    const [first, second] = await it.stage.test.waitForReceived(2)
    expect(first).toMatchObject({
      chat: { id: it.fake.chats.group, kind: 'group', title: 'general' },
      threadId,
      sender: { id: it.fake.person, name: 'Ada', handle: 'ada@x.test' },
      text: 'one',
      mentionsBot: true,
      sentAt: '2025-11-20T12:00:00.123Z',
    })
    expect(second?.mentionsBot).toBe(false)
    expect(it.fake.reads.filter((read) => read !== 'GET /oauth2/me')).toHaveLength(2)
  })

  it('takes a channel that it may not read for a group, and a person for an id', async () => {
    await using it = await openStage()
    it.fake.forbidden.add(`GET /v1/channels/${it.fake.chats.direct}`)
    it.fake.forbidden.add(`GET /v1/workspaceUsers/${it.fake.person}`)
    await it.fake.deliver({ text: 'hi' })
    const [received] = await it.stage.test.waitForReceived(1)
    expect(received).toMatchObject({ chat: { kind: 'group' }, sender: { id: it.fake.person, name: it.fake.person } })
  })

  it('fails an event when what is around it cannot be read for the moment', async () => {
    await using it = await openStage()
    it.stage.test.nextAnswer = new Response('', { status: 503 })
    await expect(it.fake.deliver({ text: 'lost' })).rejects.toThrow('500')
    await it.fake.deliver({ text: 'next' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['next'])
  })

  it('loses no event when what is around it cannot be read anew for the moment', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    const later = Date.now() + 7_200_000
    Object.assign(it.stage.test.link, { now: () => later })
    it.stage.test.nextAnswer = new Response('', { status: 503 })
    const event = it.fake.event(it.fake.posted({ tx: 'two' }))
    expect(await it.stage.receiveWebhook(it.fake.signed(event, later))).toMatchObject({ status: 200 })
    expect(it.stage.test.received.map(({ text }) => text)).toEqual(['one', 'two'])
    expect(it.stage.test.nextAnswer).toBeUndefined()
  })

  it('a message that was removed before its files could be read is read without them', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    it.stage.test.nextAnswer = new Response('', { status: 404 })
    await it.fake.post(it.fake.event(it.fake.posted({ tx: 'two', f: [{ id: 'gone' }] })))
    expect((await it.stage.test.waitForReceived(2)).map(({ text }) => text)).toEqual(['one', 'two'])
  })

  it('leaves out other workspaces, the system, what only some see, and updates that are no edits', async () => {
    await using it = await openStage()
    await it.fake.post({ ...it.fake.event(it.fake.posted()), workspaceId: 'another' })
    for (const more of [{ st: 'joined_channel' }, { eph: true }])
      await it.fake.post(it.fake.event(it.fake.posted(more)))
    await it.fake.post(it.fake.event(it.fake.posted(), 'UPDATED_MESSAGE'))
    await it.fake.post(it.fake.event({}, 'REACTION_ADDED'))
    await it.fake.post({ ...it.fake.event({}), body: '{' })
    await it.fake.post({ ...it.fake.event({}), body: '{"mId":1}' })
    expect(it.stage.test.deliveries).toBe(0)
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('says that another app wrote, and keeps names as they are', async () => {
    await using it = await openStage()
    await it.fake.post(it.fake.event(it.fake.posted({ aId: 'other', tx: 'A\u202eb' })))
    const [received] = await it.stage.test.waitForReceived(1)
    expect(received).toMatchObject({ sender: { id: 'other', isBot: true }, text: 'A\u202eb' })
  })

  it('takes time stamps in seconds and in milliseconds', async () => {
    await using it = await openStage()
    const event = it.fake.event(it.fake.posted())
    for (const time of [Date.now(), Math.floor(Date.now() / 1000)])
      expect(await it.stage.receiveWebhook(it.fake.signed(event, time))).toMatchObject({ status: 200 })
  })

  it('takes a command for a message', async () => {
    await using it = await openStage()
    const command = it.fake.trigger({ messageType: 'SLASH_COMMAND', slashCommand: '/ask', text: 'for coffee' })
    await it.fake.post(command)
    await it.fake.post(command)
    expect(it.stage.test.received).toMatchObject([
      { text: '/ask for coffee', mentionsBot: true, chat: { kind: 'group' } },
    ])
  })

  it('calls nobody with the text of an agent', async () => {
    await using it = await openStage()
    await it.stage.connection.send(it.stage.message('<<@1>> <<!channel>> 1 << 2'))
    expect(it.fake.sent[0]?.text).toBe('<\u200B<@1>> <\u200B<!channel>> 1 << 2')
    expect(it.fake.violations).toEqual([])
  })

  it('reads files with the token from Pumble alone', async () => {
    await using it = await openStage()
    const file = { kind: 'file' as const, name: 'a.txt', mime: 'text/plain', bytes: Buffer.from('a') }
    await it.fake.deliver({ text: 'a file', files: [file] })
    const [received] = await it.stage.test.waitForReceived(1)
    const read = async () =>
      it.stage.connection.readAttachment?.(received?.attachments[0]?.reference ?? {}, AbortSignal.timeout(5000))
    for (const path of [
      'https://evil.test/a',
      'https://pumble.com.evil.test/a',
      'http://files.pumble.com/a',
      'file:///etc/passwd',
    ]) {
      it.fake.foreignPath = path
      await expect(read(), path).rejects.toThrow('not kept by Pumble')
    }
    it.fake.foreignPath = undefined
    expect(await read()).toBeDefined()
  })
})
