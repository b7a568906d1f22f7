import { npubEncode } from 'nostr-tools/nip19'
import { createRumor } from 'nostr-tools/nip59'
import { finalizeEvent, generateSecretKey, getPublicKey } from 'nostr-tools/pure'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/nostr/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/nostr/decode.ts'
import { toFailure } from '../../../adapters/channels/nostr/errors.ts'
import { openEnvelope } from '../../../adapters/channels/nostr/envelope.ts'
import { Identity } from '../../../adapters/channels/nostr/identity.ts'
import { Inbox } from '../../../adapters/channels/nostr/inbox.ts'
import { usableRelays } from '../../../adapters/channels/nostr/message-relays.ts'
import { Rumor } from '../../../adapters/channels/nostr/wire.ts'
import type { Event } from '../../../adapters/channels/nostr/wire.ts'
import { bytesOf, within } from '../../contract/channel-checks/check.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeNostr } from '../../support/platforms/nostr.ts'
import type { FakeNostrOptions } from '../../support/platforms/nostr.ts'

async function openStage({
  config = {},
  ...options
}: FakeNostrOptions & { config?: Readonly<Record<string, unknown>> } = {}) {
  const fake = await FakeNostr.start(options)
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

describe('nostr', () => {
  it('takes no message that is not of whom it names, was altered, or is of another kind', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    const rumor = fake.rumorOf({ text: 'forged' })
    fake.publish(fake.wrap(rumor, fake.ada, fake.clara))
    fake.publish(fake.wrap({ ...rumor, content: 'altered' }, fake.ada))
    fake.publish({ ...fake.wrap(rumor, fake.ada), content: 'A' })
    fake.publish({ ...fake.wrap(rumor, fake.ada), sig: '0'.repeat(128) })
    fake.publish(fake.wrap(createRumor({ kind: 7, content: '+' }, fake.ada.secret), fake.ada))
    await fake.deliver({ text: 'real' })
    expect((await stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['real'])
    expect(stage.test.logged.join('\n')).toContain('the message is not of whom sealed it')
    expect(stage.test.logged.join('\n')).toContain('the id of the message is wrong')
  })

  it('reads nothing that was written before the first start, and all that came while it was away, in order', async () => {
    const fake = await FakeNostr.start({ page: 4 })
    fake.publish(fake.wrap(fake.rumorOf({ text: 'old', writtenAt: fake.seconds() - 60 }), fake.ada))
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.disconnect()
    for (let index = 0; index < 25; index++) await fake.deliver({ text: `m${index}` })
    await stage.reopen()
    const received = await stage.test.waitForReceived(25)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 25 }, (_, index) => `m${index}`))
  })

  it('stays connected while one relay is left, says so, and reads what the lost one has when it is back', async () => {
    const fake = await FakeNostr.start()
    await using other = await FakeNostr.start({ beside: fake })
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, relays: [fake.url, other.url] })
    const connection = await stage.open()
    const rumor = fake.rumorOf({ text: 'on both' })
    for (const relay of [fake, other]) relay.publish(relay.wrap(rumor, fake.ada))
    await stage.test.waitForReceived(1)
    await other.disconnect()
    await fake.deliver({ text: 'on one' })
    await stage.test.waitForReceived(2)
    await expect.poll(() => connection.warnings?.()).toHaveLength(1)
    await other.deliver({ text: 'on the lost one' })
    stage.test.wake()
    const received = await stage.test.waitForReceived(3)
    expect(received.map(({ text }) => text)).toEqual(['on both', 'on one', 'on the lost one'])
    expect(connection.warnings?.()).toEqual([])
    await Promise.all([fake.disconnect(), other.disconnect()])
    expect(await connection.closed).toMatchObject({ retry: 'later' })
  })

  it('opens while one relay does not take it, and closes when a relay ends the subscription', async () => {
    const fake = await FakeNostr.start()
    await using stranger = await FakeNostr.start()
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, relays: [stranger.url, fake.url] })
    const connection = await stage.open()
    expect(connection.warnings?.()[0]).toContain('restricted: this relay is for its members')
    fake.closeSubscriptions('error: shutting down idle subscription')
    expect(await connection.closed).toMatchObject({ retry: 'later', reason: expect.stringContaining('shutting down') })
  })

  it.each([
    ['the link ends', (stage: ChannelStage) => stage.test.abort()],
    ['it is closed', (stage: ChannelStage) => stage.connection[Symbol.asyncDispose]()],
  ])('ends at once while it waits for older messages, with newer ones behind them, when %s', async (_, end) => {
    const fake = await FakeNostr.start({ hidesOlder: true })
    await fake.deliver({ text: 'stored' })
    await using stage = new ChannelStage(adapter, fake)
    const connection = await stage.open()
    await fake.waitForOlder()
    const before = stage.test.heard
    await fake.deliver({ text: 'new' })
    await expect.poll(() => stage.test.heard).toBeGreaterThan(before)
    await within('the end', Promise.all([end(stage), connection.closed]))
    expect(stage.test.received).toEqual([])
  })

  it('lets all else go on while it looks into what strangers send', async () => {
    await using it = await openStage()
    const inbox = new Inbox(it.stage.test.link, new Identity(it.fake.config.token))
    const forged = { ...it.fake.wrap(it.fake.rumorOf({ text: 'x' }), it.fake.ada), sig: '0'.repeat(128) }
    let turns = 0
    const count = (): void => {
      if (++turns < 20) setImmediate(count)
    }
    setImmediate(count)
    for (let index = 0; index < 20; index++) await inbox.receive({ ...forged, id: String(index).padStart(64, '0') })
    expect(turns).toBe(20)
  })

  it('answers people with old apps as they write, and looks for a message that may have been sent', async () => {
    await using it = await openStage()
    const id = it.fake.deliverLegacy('hello')
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message).toMatchObject({ id, text: 'hello', replyContext: { protocol: 'nip04' } })
    const to = { chatId: it.fake.person, replyContext: message?.replyContext ?? {} }
    const answer = it.stage.message('an answer', { to, replyTo: id })
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(answer)).rejects.toMatchObject({ retry: 'later' })
    await it.stage.reopen()
    expect(await it.stage.connection.send({ ...answer, mayBeSent: true })).toMatchObject({ wasSentBefore: true })
    const other = await it.stage.connection.send(it.stage.message('another', { to }))
    expect(it.fake.sent).toMatchObject([
      { text: 'an answer', replyTo: id },
      { id: other.id, text: 'another' },
    ])
    expect(it.fake.events.filter(({ kind }) => kind === 4)).toHaveLength(3)
  })

  it('does not take a message for sent because a relay answers with another one', async () => {
    await using it = await openStage()
    const to = { chatId: it.fake.person, replyContext: { protocol: 'nip04' } }
    await it.stage.connection.send(it.stage.message('one', { to }))
    it.fake.ignoreTimes()
    const sent = await it.stage.connection.send(it.stage.message('two', { to, mayBeSent: true }))
    expect(sent).not.toHaveProperty('wasSentBefore')
    expect(it.fake.sent.map(({ text }) => text)).toEqual(['one', 'two'])
  })

  it('writes to everybody in a group, and keeps a copy for the apps of its own', async () => {
    await using it = await openStage()
    await it.stage.connection.send(it.stage.message('to all', { to: { chatId: it.fake.chats.group } }))
    const readers = it.fake.events.flatMap(({ kind, tags }) => (kind === 1059 ? [tags[0]?.[1]] : []))
    expect(readers.toSorted()).toEqual([it.fake.ada, it.fake.clara, it.fake.bot].map((key) => key.public).toSorted())
  })

  it('proves who it is where a relay takes messages of members only', async () => {
    await using it = await openStage({ closesWrites: true })
    await it.stage.connection.send(it.stage.message('hi'))
    expect(it.fake.sent).toMatchObject([{ text: 'hi' }])
  })

  it('publishes its relays once, and not when they are known', async () => {
    await using it = await openStage()
    await it.stage.reopen()
    const lists = it.fake.events.filter(({ kind, pubkey }) => kind === 10_050 && pubkey === it.fake.bot.public)
    expect(lists.map(({ tags }) => tags)).toEqual([[['relay', it.fake.url]]])
    await using quiet = await openStage({ config: { announce: false } })
    expect(quiet.fake.events.map(({ pubkey }) => pubkey)).not.toContain(quiet.fake.bot.public)
  })

  it.each([
    ['rate-limited: slow down', 'rate_limit', 'later'],
    ['error: no database', 'server_error', 'later'],
    ['something else', 'server_error', 'later'],
    ['pow: difficulty 26 is less than 30', 'invalid_request', 'never'],
    ['invalid: too large', 'invalid_request', 'never'],
    ['restricted: not a member', 'auth', 'never'],
  ] as const)('takes "%s" for %s', async (words, reason, retry) => {
    await using it = await openStage()
    it.fake.refuseNext(words)
    await expect(it.stage.connection.send(it.stage.message('hi'))).rejects.toMatchObject({ reason, retry })
    expect(it.fake.sent).toEqual([])
  })

  it('does not take the refusal of a relay that somebody else names for one of its key', () => {
    expect(toFailure('x.test', 'restricted: no', false)).toMatchObject({ reason: 'invalid_request', retry: 'never' })
    expect(toFailure('x.test', 'duplicate', false)).toMatchObject({ retry: 'later' })
  })

  it('takes a message that the relay has for one that is sent', async () => {
    await using it = await openStage()
    it.fake.refuseNext('duplicate: already have this event')
    await expect(it.stage.connection.send(it.stage.message('hi'))).resolves.toMatchObject({ id: expect.any(String) })
  })

  it('connects to no address that people list unless it is encrypted, or the operator names it', () => {
    const own = ['ws://127.0.0.1:7777']
    const listed = ['ws://10.0.0.1', 'https://x.test', 'wss://a:b@x.test', 'wss://x.test:22', 'ws://127.0.0.1:22', 'x']
    expect(usableRelays(listed, own)).toEqual([])
    expect(usableRelays(['ws://127.0.0.1:7777/', 'wss://a.test', 'wss://a.test'], own)).toEqual([
      ...own,
      'wss://a.test',
    ])
    expect(usableRelays(['wss://1.test', 'wss://2.test', 'wss://3.test', 'wss://4.test'], own)).toHaveLength(3)
  })

  it('sends a message where its reader lists it, and does not believe a list of somebody else', async () => {
    const fake = await FakeNostr.start()
    await using other = await FakeNostr.start({ beside: fake })
    const relays = [fake.url, other.url]
    fake.listRelays(fake.ada, [other.url])
    other.listRelays(fake.ada, [other.url])
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, relays })
    await stage.open()
    await stage.connection.send(stage.message('here'))
    expect([fake, other].map(({ sent }) => sent.length)).toEqual([0, 1])
    const tags = [['relay', fake.url]]
    const forged = finalizeEvent({ kind: 10_050, created_at: 9e9, tags, content: '' }, generateSecretKey())
    fake.publish({ ...forged, pubkey: fake.clara.public })
    await stage.connection.send(stage.message('to clara', { to: { chatId: fake.clara.public } }))
    const isForClara = ({ tags: [tag] }: Event): boolean => tag?.[1] === fake.clara.public
    expect([fake, other].map(({ events }) => events.filter(isForClara).length)).toEqual([0, 1])
  })

  it('sends nothing to the wrong relays while no relay tells where its reader reads', async () => {
    const fake = await FakeNostr.start()
    await using other = await FakeNostr.start({ beside: fake })
    const both = [fake, other]
    for (const relay of both) relay.listRelays(fake.ada, [other.url])
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, relays: [fake.url, other.url] })
    await stage.open()
    for (const relay of both) relay.hideLists(true)
    const message = stage.message('here')
    expect(await stage.failureOf(() => stage.connection.send(message))).toMatchObject({ retry: 'later' })
    for (const relay of both) relay.hideLists(false)
    await stage.connection.send(message)
    expect(both.map(({ sent }) => sent.length)).toEqual([0, 1])
  })

  it('keeps the order of messages of the same second, over a restart', async () => {
    await using it = await openStage()
    for (const text of ['one', 'two']) await it.stage.connection.send(it.stage.message(text))
    await it.stage.reopen()
    const message = it.stage.message('three')
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(message)).rejects.toThrow('closed the connection')
    await it.stage.reopen()
    const { id } = await it.stage.connection.send(message)
    expect(it.fake.sent.map((shown) => shown.text)).toEqual(['one', 'two', 'three'])
    expect(it.fake.sent[2]?.id).toBe(id)
    const times = JSON.parse(it.stage.test.state.get('send-times') ?? '') as [string, string, number][]
    expect(new Set(times.map(([, , time]) => time)).size).toBe(3)
  })

  it('gives out no file that was altered', async () => {
    await using it = await openStage()
    const bytes = Buffer.from('abc')
    await it.fake.deliver({ text: '', files: [{ kind: 'file', name: 'a.txt', mime: 'text/plain', bytes }] })
    const [message] = await it.stage.test.waitForReceived(1)
    const reference = message?.attachments[0]?.reference ?? {}
    const read = async (more: object) => {
      const content = await it.stage.connection.readAttachment?.({ ...reference, ...more }, AbortSignal.timeout(5000))
      return bytesOf(content ?? (async function* () {})())
    }
    expect(String(await read({}))).toBe('abc')
    await expect(read({ nonce: '00'.repeat(12) })).rejects.toThrow('not the file that was sent')
  })

  it('knows people by either form of their key, and says what is wrong with its own', async () => {
    const id = getPublicKey(generateSecretKey())
    const sender = { id, name: 'x' }
    expect(
      [id, id.toUpperCase(), npubEncode(id), `nostr:${npubEncode(id)}`].map((entry) =>
        adapter.matchesSender?.(entry, sender),
      ),
    ).toEqual([true, true, true, true])
    expect(adapter.matchesSender?.('npub1xyz', sender)).toBe(false)
    const fake = await FakeNostr.start()
    const token = `${fake.config.token.slice(0, -1)}${fake.config.token.endsWith('q') ? 'p' : 'q'}`
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, token })
    const error = await stage.failureOf(() => stage.open())
    expect(error).toMatchObject({ reason: 'auth', retry: 'never' })
    expect(JSON.stringify(error) + String(error)).not.toContain(token)
  })

  it('leaves out frames that it cannot read, and goes on', async () => {
    await using it = await openStage()
    for (const frame of [[], ['EVENT'], ['EVENT', 'svc-9', 5], ['OK', 'x', true, ''], { a: 1 }, ['NOTICE', 'hi']])
      it.fake.sendFrame(frame)
    await it.fake.deliver({ text: 'after' })
    expect((await it.stage.test.waitForReceived(1))[0]?.text).toBe('after')
  })

  it('leaves out groups whose id would be too long', () => {
    const identity = new Identity('1'.repeat(64))
    const tags = Array.from({ length: 7 }, () => ['p', getPublicKey(generateSecretKey())])
    const context = { identity, isOwn: () => false }
    const rumor = createRumor({ kind: 14, content: 'hi', tags }, generateSecretKey())
    expect(decodeMessage(rumor, context)).toBeUndefined()
    const smaller = createRumor({ kind: 14, content: 'hi', tags: tags.slice(1) }, generateSecretKey())
    expect(decodeMessage(smaller, context)?.chat.id).toHaveLength(7 * 64 + 6)
  })
})

const identity = new Identity('1'.repeat(64))
const author = '2'.repeat(64)
testHostileInput(
  'nostr',
  {
    id: author,
    pubkey: author,
    created_at: 1_760_000_000,
    kind: 14,
    tags: [
      ['p', identity.publicKey],
      ['e', author, '', 'reply'],
      ['subject', 'x'],
    ],
    content: `nostr:${identity.npub} hi`,
  },
  parsed(Rumor, (rumor) => decodeMessage(rumor, { identity, isOwn: () => true })),
)
testHostileInput(
  'nostr, a file',
  {
    id: author,
    pubkey: author,
    created_at: 1_760_000_000,
    kind: 15,
    tags: [
      ['file-type', 'image/png'],
      ['encryption-algorithm', 'aes-gcm'],
      ['decryption-key', author],
      ['decryption-nonce', '00'.repeat(12)],
      ['size', '5'],
    ],
    content: 'https://x.test/a',
  },
  parsed(Rumor, (rumor) => decodeMessage(rumor, { identity, isOwn: () => true })),
)

describe('nostr, an envelope', () => {
  const legacy = finalizeEvent(
    { kind: 4, created_at: 1, tags: [['p', identity.publicKey]], content: 'a?iv=b' },
    generateSecretKey(),
  )

  it.each(['id', 'pubkey', 'sig', 'content', 'kind', 'tags', 'created_at'])('is refused with another %s', (field) => {
    const event = { ...legacy, [field]: field === 'kind' || field === 'created_at' ? 5 : [['x']] }
    expect(() => openEnvelope(event as Event, identity)).toThrow()
  })
})
