import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/google-chat/adapter.ts'
import { GoogleChatConfig } from '../../../adapters/channels/google-chat/config.ts'
import { decodeEvent } from '../../../adapters/channels/google-chat/decode.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { testHostileInput } from '../../support/hostile-input.ts'
import { FakeGoogleChat } from '../../support/platforms/google-chat.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeGoogleChat.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

const user = { name: 'users/1', displayName: 'Ada', email: 'ada@x.test', type: 'HUMAN' }
const space = {
  name: 'spaces/A',
  type: 'ROOM',
  spaceType: 'SPACE',
  displayName: 'General',
  singleUserBotDm: false,
  spaceThreadingState: 'THREADED_MESSAGES',
}
const message = {
  name: 'spaces/A/messages/B.C',
  sender: user,
  createTime: '2026-11-20T12:00:00Z',
  text: '@Helper hi',
  argumentText: ' hi',
  thread: { name: 'spaces/A/threads/T' },
  threadReply: true,
  space,
  quotedMessageMetadata: { name: 'spaces/A/messages/D' },
  annotations: [{ type: 'USER_MENTION', userMention: { user: { name: 'users/9', type: 'BOT' } } }],
  attachment: [{ contentName: 'n', contentType: 'a/b', attachmentDataRef: { resourceName: 'spaces/A/x' } }],
}
const event = { type: 'MESSAGE', eventTime: '2026-11-20T12:00:00Z', message, space, user }
const press = { ...event, type: 'CARD_CLICKED', action: { parameters: [{ key: 'svc', value: 'yes' }] } }

testHostileInput('google_chat', event, decodeEvent)
testHostileInput('google_chat, a button', press, decodeEvent)
testHostileInput(
  'google_chat, an add-on',
  {
    chat: { eventTime: event.eventTime, user, messagePayload: { message, space } },
    commonEventObject: { parameters: {} },
  },
  decodeEvent,
)

describe('google_chat', () => {
  it('tells threads, mentions and senders of either form of events', () => {
    const expected = {
      id: message.name,
      chat: { id: 'spaces/A', kind: 'group', title: 'General' },
      threadId: 'spaces/A/threads/T',
      sender: { id: 'users/1', name: 'Ada', handle: 'ada@x.test' },
      text: 'hi',
      mentionsBot: true,
      replyTo: 'spaces/A/messages/D',
      sentAt: '2026-11-20T12:00:00.000Z',
    }
    expect(decodeEvent(event)).toMatchObject(expected)
    const payload = { message, space }
    expect(decodeEvent({ chat: { user, messagePayload: payload } })).toMatchObject(expected)
    const command = { ...message, slashCommand: { commandId: '1' }, text: '/status now', argumentText: ' now' }
    expect(decodeEvent({ chat: { user, appCommandPayload: { message: command, space } } })).toMatchObject({
      text: '/status now',
    })
  })

  it('has one session for a space without threads, and threads where a person answers in one', () => {
    const flat = { ...space, spaceThreadingState: 'UNTHREADED_MESSAGES' }
    const { threadReply: _, ...plain } = message
    expect(decodeEvent({ ...event, space: flat, message: plain })?.threadId).toBe(undefined)
    expect(decodeEvent({ ...event, space: flat })?.threadId).toBe('spaces/A/threads/T')
    expect(decodeEvent({ ...event, message: plain })?.threadId).toBe('spaces/A/threads/T')
  })

  it('takes a direct message of two people, in which the app is mentioned, for a group', () => {
    const kind = (more: object) => decodeEvent({ ...event, space: { name: 'spaces/A', ...more } })?.chat.kind
    expect(kind({ spaceType: 'DIRECT_MESSAGE' })).toBe('group')
    expect(kind({ spaceType: 'DIRECT_MESSAGE', singleUserBotDm: true })).toBe('direct')
    expect(kind({ type: 'DM' })).toBe('direct')
    expect(kind({ spaceType: 'GROUP_CHAT' })).toBe('group')
  })

  it('keeps the name as it is, and leaves out what is no message', () => {
    expect(decodeEvent({ ...event, user: { ...user, displayName: 'A\u202eda' } })?.sender.name).toBe('A\u202eda')
    for (const type of ['ADDED_TO_SPACE', 'REMOVED_FROM_SPACE', 'WIDGET_UPDATED'])
      expect(decodeEvent({ ...event, type })).toBe(undefined)
    expect(decodeEvent({ ...press, action: { parameters: [{ key: 'other', value: 'x' }] } })).toBe(undefined)
    expect(decodeEvent({ ...event, user: { ...user, type: 'BOT' } })).toBe(undefined)
  })

  it('reads no file from another place of the API', () => {
    const files = (resourceName: string) =>
      decodeEvent({ ...event, message: { ...message, attachment: [{ attachmentDataRef: { resourceName } }] } })
        ?.attachments
    for (const name of ['..', '../spaces', 'a/../../b', 'a/.', 'a?b=c', 'a#b', 'a\\..\\b', ''])
      expect(files(name), name).toEqual([])
    for (const name of ['spaces/A/messages/B.C/attachments/D', 'Q2x4+/x==']) expect(files(name), name).toHaveLength(1)
  })

  it('needs the key of a service account, and an audience', () => {
    const issues = (config: object) => v.safeParse(GoogleChatConfig, config).issues?.map(({ message: text }) => text)
    const key = { type: 'service_account', client_email: 'a@b', private_key: '-----BEGIN PRIVATE KEY-----' }
    const token = JSON.stringify(key)
    expect(issues({ token, project_number: '1' })).toBe(undefined)
    expect(issues({ token })).toEqual(['needs project_number or endpoint_url, the authentication audience of the app'])
    for (const wrong of ['', '{}', 'abc', JSON.stringify({ ...key, type: 'authorized_user' })])
      expect(issues({ token: wrong, project_number: '1' })).toEqual(['the JSON of a key of a service account'])
  })

  it('says that a private key is none, without showing it', async () => {
    await using fake = await FakeGoogleChat.start()
    const key = { ...JSON.parse(fake.config.token), private_key: '-----BEGIN PRIVATE KEY-----\nMIIbroken\n' }
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, token: JSON.stringify(key) })
    const error = await stage.failureOf(() => stage.open())
    expect(error).toMatchObject({ reason: 'auth', retry: 'never' })
    expect(String(error)).not.toContain('MIIbroken')
  })

  it('renews a token that was revoked, once, and sends the message once', async () => {
    await using it = await openStage()
    it.fake.revokeTokens()
    await it.stage.connection.send(it.stage.message('hello'))
    expect(it.fake.issued).toHaveLength(2)
    expect(it.fake.sent).toHaveLength(1)
  })

  it('answers in the thread, and calls nobody with the text of an agent', async () => {
    await using it = await openStage()
    const to = { chatId: it.fake.chats.group, threadId: it.fake.chats.thread }
    await it.stage.connection.send(it.stage.message('<users/all> and <users/111>', { to }))
    expect(it.fake.sent[0]).toMatchObject({ threadId: to.threadId, text: '<\u200Busers/all> and <\u200Busers/111>' })
    expect(it.fake.violations).toEqual([])
  })

  it('sends to names of spaces alone', async () => {
    await using it = await openStage()
    for (const chatId of ['../x', 'spaces/a/../b', 'spaces/a?b', 'users/1', ''])
      await expect(it.stage.connection.send(it.stage.message('x', { to: { chatId } }))).rejects.toMatchObject({
        retry: 'never',
      })
    expect(it.fake.violations).toEqual([])
  })

  it('reads the spaces of the configuration only', async () => {
    await using it = await openStage({ allowed_spaces: ['spaces/DM1'] })
    await it.fake.deliver({ text: 'in the room', isGroup: true, mentionsBot: true })
    await it.fake.deliver({ text: 'direct' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['direct'])
  })

  it('takes a token for an address from Google Chat or the add-on of the project only', async () => {
    await using fake = await FakeGoogleChat.start({ addOn: true })
    const { project_number: _, ...config } = fake.config
    await using stage = new ChannelStage(adapter, fake, config)
    await stage.open()
    // Without the number no add-on can be told from one of somebody else.
    for (const number of ['1234567890', 'undefined']) {
      const email = `service-${number}@gcp-sa-gsuiteaddons.iam.gserviceaccount.com`
      expect(await stage.receiveWebhook(fake.signed(event, { email }))).toMatchObject({ status: 401 })
    }
    const { status } = await stage.receiveWebhook(fake.signed(event, { email: 'chat@system.gserviceaccount.com' }))
    expect(status).toBe(200)
    expect((await stage.test.waitForReceived(1))[0]?.text).toBe('hi')
  })
})
