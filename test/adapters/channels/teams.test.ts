import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/teams/adapter.ts'
import { decodeActivity } from '../../../adapters/channels/teams/decode.ts'
import { isServiceUrl } from '../../../adapters/channels/teams/service-url.ts'
import { Activity } from '../../../adapters/channels/teams/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { makeSigningKey } from '../../support/platforms/json-web-token.ts'
import { FakeTeams } from '../../support/platforms/teams.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeTeams.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

testHostileInput(
  'teams',
  {
    type: 'messageUpdate',
    id: '1763640000001',
    timestamp: '2026-11-20T12:00:00Z',
    serviceUrl: 'https://smba.trafficmanager.net/emea/',
    channelId: 'msteams',
    from: { id: '29:ada', name: 'Ada', aadObjectId: '0a0a' },
    recipient: { id: '28:app', name: 'Helper' },
    conversation: { id: '19:a@thread.tacv2;messageid=1', conversationType: 'channel', name: 'x', tenantId: 't' },
    text: '<at>Helper</at> hi <at>Eve</at>',
    replyToId: '1',
    entities: [{ type: 'mention', mentioned: { id: '28:app', name: 'Helper' }, text: '<at>Helper</at>' }],
    attachments: [
      {
        contentType: 'application/vnd.microsoft.teams.file.download.info',
        name: 'a.txt',
        content: { downloadUrl: 'https://x.test/a' },
      },
      { contentType: 'image/*', contentUrl: 'https://smba.trafficmanager.net/emea/v3/attachments/1', name: 'n' },
    ],
    channelData: {
      eventType: 'editMessage',
      tenant: { id: 't' },
      team: { id: 'g' },
      channel: { id: 'c', name: 'General' },
    },
    value: null,
  },
  parsed(Activity, (activity) => decodeActivity(activity, { appId: 'app', keepAddress: () => {} })),
)

it('teams: reads ten megabytes of tags in time', () => {
  const start = process.threadCpuUsage()
  for (const text of ['<at', '<at>', '<at a', '</at>']) {
    const activity = {
      type: 'message',
      id: '1',
      serviceUrl: 's',
      channelId: 'c',
      from: { id: 'a' },
      recipient: { id: 'b' },
    }
    const raw = { ...activity, conversation: { id: 'x' }, text: text.repeat(10_000_000 / text.length) }
    decodeActivity(v.parse(Activity, raw), { appId: 'app', keepAddress: () => {} })
  }
  expect(process.threadCpuUsage(start).user / 1000).toBeLessThan(3000)
})

describe('teams', () => {
  it('takes the person by the id of the directory, and strips the mention of the bot alone', async () => {
    await using it = await openStage()
    const mention = {
      type: 'mention',
      mentioned: { id: '28:3f1c2a52-7b0e-4a51-9f55-0d5f1f4f8a11' },
      text: '<at>Hel\u202eper</at>',
    }
    const other = { type: 'mention', mentioned: { id: '29:eve' }, text: '<at>Eve</at>' }
    const text = '<at>Hel\u202eper</at>, ask <at>Eve</at>\n'
    await it.fake.post(it.fake.activity({ text, entities: [mention, other] }))
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message).toMatchObject({
      text: 'ask @Eve',
      mentionsBot: true,
      sender: { id: '0a0a0a0a-aaaa-4bbb-8ccc-dddddddddddd', name: 'Ada', handle: '29:1ada' },
      sentAt: '2026-11-20T12:00:00.123Z',
    })
  })

  it('makes each post of a channel a thread of it', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'a post', isGroup: true, mentionsBot: true })
    await it.fake.deliver({ text: 'an answer', threadId: id })
    const received = await it.stage.test.waitForReceived(2)
    expect(received.map(({ threadId }) => threadId)).toEqual([id, id])
    expect(received[0]?.chat).toEqual({
      id: '19:general@thread.tacv2',
      kind: 'group',
      title: 'General',
      guildId: '19:team@thread.tacv2',
    })
  })

  it('answers at the service that the message came from, after a restart too, and at no other', async () => {
    await using it = await openStage()
    const to = { chatId: it.fake.chats.direct }
    await it.stage.connection.send(it.stage.message('unasked'))
    await it.fake.deliver({ text: 'hi' })
    await it.stage.connection.send(it.stage.message('known'))
    await it.stage.reopen()
    const [message] = it.stage.test.received
    await it.stage.connection.send(
      it.stage.message('stored', { to: { ...to, replyContext: message?.replyContext ?? {} } }),
    )
    const evil = { serviceUrl: 'http://127.0.0.2:1/' }
    await it.stage.connection.send(it.stage.message('forged', { to: { ...to, replyContext: evil } }))
    expect(it.fake.regions).toEqual(['teams', 'emea', 'emea', 'teams'])
  })

  it('sends the access token to hosts of Teams alone', () => {
    const config = { base_url: 'http://127.0.0.1:8080/teams', service_hosts: ['teams.example.org'] }
    for (const url of [
      'https://smba.trafficmanager.net/emea/',
      'https://teams.example.org/x',
      'http://127.0.0.1:8080/emea',
    ])
      expect(isServiceUrl(url, config), url).toBe(true)
    for (const url of [
      'http://smba.trafficmanager.net/',
      'https://smba.trafficmanager.net.evil.test/',
      'https://evil.test/smba.trafficmanager.net',
      'https://smba.trafficmanager.net:8443/',
      'https://smba.trafficmanager.net@evil.test/',
      'https://a:b@smba.trafficmanager.net/',
      'http://127.0.0.1:8081/teams',
      `https://smba.trafficmanager.net/${'a'.repeat(2000)}`,
      'file:///etc/passwd',
      '',
    ])
      expect(isServiceUrl(url, config), url).toBe(false)
  })

  it('reads messages of its own tenant, or of those that are allowed', async () => {
    await using it = await openStage()
    const foreign = { channelData: { tenant: { id: 'another' } }, text: 'foreign' }
    expect(await it.fake.post(it.fake.activity(foreign))).toMatchObject({ status: 200 })
    expect(await it.fake.post(it.fake.activity({ channelData: undefined, conversation: { id: 'x' } }))).toMatchObject({
      status: 200,
    })
    await it.fake.deliver({ text: 'own' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['own'])
    await using open = await openStage({ allowed_tenants: ['ANOTHER'] })
    await open.fake.deliver({ text: 'own' })
    await open.fake.post(open.fake.activity(foreign))
    expect((await open.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['foreign'])
  })

  it('renews a token that was revoked, once, and sends the message once', async () => {
    await using it = await openStage()
    it.fake.revokeTokens()
    await it.stage.connection.send(it.stage.message('hello'))
    expect(it.fake.issued).toHaveLength(2)
    expect(it.fake.sent).toHaveLength(1)
  })

  it('reads the keys again when another one signs, and not for each forged one', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    expect(it.fake.keyReads).toBe(1)
    const unknown = { ...makeSigningKey('made up'), id: 'made up' }
    for (let count = 0; count < 3; count++) {
      const { status } = await it.stage.receiveWebhook(it.fake.signed(it.fake.activity({ text: 'x' }), {}, unknown))
      expect(status).toBe(401)
    }
    expect(it.fake.keyReads).toBe(1)
  })

  it('is told by 500 to send again when the keys cannot be read, and reads no keys of another place', async () => {
    await using it = await openStage()
    const body = { jwks_uri: 'http://127.0.0.2:9/keys' }
    it.stage.test.nextAnswer = Response.json(body)
    await expect(it.fake.deliver({ text: 'later' })).rejects.toThrow('500')
    await it.fake.deliver({ text: 'now' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['now'])
  })

  it('says that two requests met, and why no token was issued', async () => {
    await using it = await openStage()
    const answer = (status: number) => Response.json({ error: { code: 'PreconditionFailed' } }, { status })
    it.stage.test.nextAnswer = answer(412)
    expect(await it.stage.failureOf(() => it.stage.connection.send(it.stage.message('x')))).toMatchObject({
      retry: 'later',
    })
    await using wrong = new ChannelStage(adapter, it.fake, it.fake.wrongConfig)
    await expect(wrong.open()).rejects.toThrow('AADSTS7000215: Invalid client secret provided.')
    const elsewhere = { ...it.fake.config, tenant_id: '00000000-1111-4222-8333-444455556666' }
    await using lost = new ChannelStage(adapter, it.fake, elsewhere)
    await expect(lost.open()).rejects.toMatchObject({ reason: 'auth', message: /AADSTS90002: Tenant not found\.$/ })
  })

  it('acknowledges what is no message, and answers no invoke', async () => {
    await using it = await openStage()
    const statuses: number[] = []
    for (const more of [
      { type: 'conversationUpdate' },
      { type: 'typing' },
      { type: 'messageReaction' },
      { from: null },
    ])
      statuses.push((await it.fake.post(it.fake.activity({ ...more, text: 'x' }))).status)
    statuses.push(
      (
        await it.fake.post(
          it.fake.activity({
            type: 'messageUpdate',
            text: 'x',
            channelData: { eventType: 'undeleteMessage', tenant: { id: it.fake.config.tenant_id } },
          }),
        )
      ).status,
    )
    statuses.push((await it.fake.post(it.fake.activity({ type: 'invoke', name: 'adaptiveCard/action' }))).status)
    statuses.push((await it.stage.receiveWebhook({ method: 'GET', headers: {}, body: new Uint8Array() })).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 501, 405])
    expect(it.stage.test.deliveries).toBe(0)
  })

  it('reads pictures of Teams alone, and forgets the address of a file with the connection', async () => {
    await using it = await openStage()
    const read = async (reference: object) =>
      it.stage.connection.readAttachment?.({ ...reference }, AbortSignal.timeout(5000))
    await expect(read({ image: 'https://evil.test/v3/attachments/1' })).rejects.toThrow('not kept by Teams')
    const file = { kind: 'file' as const, name: 'a.txt', mime: 'text/plain', bytes: Buffer.from('a') }
    await it.fake.deliver({ text: 'a file', files: [file] })
    const [message] = await it.stage.test.waitForReceived(1)
    const reference = message?.attachments[0]?.reference ?? {}
    expect(JSON.stringify(reference)).not.toContain('http')
    expect(await read(reference)).toBeDefined()
    await it.stage.reopen()
    await expect(read(reference)).rejects.toThrow('no longer known')
  })

  it('leaves out buttons that a card has no room for', async () => {
    await using it = await openStage()
    const buttons = Array.from({ length: 8 }, (_, index) => ({ label: `${index}`, value: `/choose ${index}` }))
    await it.stage.connection.send(it.stage.message('choose', { buttons }))
    expect(it.fake.sent[0]?.buttons).toHaveLength(6)
    expect(it.fake.violations).toEqual([])
  })
})
