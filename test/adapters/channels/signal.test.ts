import { parse } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import { v7 as uuid } from 'uuid'
import { expect, it } from 'vitest'
import signal from '../../../adapters/channels/signal/adapter.ts'
import { decodeEnvelope } from '../../../adapters/channels/signal/decode.ts'
import { Envelope } from '../../../adapters/channels/signal/wire.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { ADA, FakeSignalDaemon, FakeSignalRest, NUMBER } from '../../support/platforms/signal.ts'

const message = (more: Partial<OutboundMessage> = {}): OutboundMessage => ({
  id: uuid(),
  to: { chatId: ADA.uuid },
  text: 'hello',
  plainText: 'hello',
  attachments: [],
  ...more,
})
let time = Date.now()
/** A message of Ada with these fields beside those that each has. */
const event = (data: object, more: object = {}, account: string = NUMBER) => ({
  account,
  envelope: {
    sourceNumber: ADA.number,
    sourceUuid: ADA.uuid,
    sourceName: 'Ada',
    timestamp: ++time,
    dataMessage: { timestamp: time, message: 'x', ...data },
    ...more,
  },
})

it('reads mentions, quotes and edits, and leaves out what is no message', async () => {
  await using platform = await FakeSignalDaemon.start()
  await using test = new TestLink(signal, platform.config)
  await using _ = await signal.open(test.link)
  await platform.waitForListener()
  const group = { groupInfo: { groupId: 'Z3I=', groupName: null } }
  const mentions = [
    { name: 'bot', number: NUMBER, uuid: null, start: 0, length: 1 },
    { name: 'Grace', number: null, uuid: 'g', start: 7, length: 1 },
  ]
  platform.tell({ ...event({}), envelope: { ...event({}).envelope, dataMessage: undefined, typingMessage: {} } })
  platform.tell(event({ message: null, reaction: { emoji: '👍' } }))
  platform.tell({ account: NUMBER, exception: { message: 'cannot be decrypted', type: 'x' } })
  platform.tell(event({ message: '\ufffc, ask \ufffc!', mentions, ...group }))
  platform.tell(event({ message: 'about yours', quote: { id: 5, authorNumber: NUMBER, authorUuid: 'b' }, ...group }))
  platform.tell(event({ message: 'to others', quote: { id: 6, authorNumber: null, authorUuid: 'g' }, ...group }))
  platform.tell(event({}, { editMessage: { targetSentTimestamp: 17, dataMessage: { timestamp: 18, message: 'new' } } }))
  const [mention, reply, other, edit] = await test.waitForReceived(4)
  expect(mention).toMatchObject({ text: 'ask @Grace!', mentionsBot: true, chat: { id: 'group.Z3I=', kind: 'group' } })
  expect(reply).toMatchObject({ mentionsBot: true, replyTo: `5:${NUMBER}` })
  expect(other).toMatchObject({ mentionsBot: false, replyTo: '6:g' })
  expect(edit).toMatchObject({ id: `17:${ADA.uuid}`, text: 'new', isEdit: true })
  expect(mention?.sender).toEqual({ id: ADA.uuid, name: 'Ada', handle: ADA.number })
})

it('keeps the number of its account from others, and says so', async () => {
  await using platform = await FakeSignalDaemon.start()
  await using test = new TestLink(signal, platform.config)
  await using connection = await signal.open(test.link)
  await platform.waitForListener()
  platform.tell(event({ message: 'for somebody else' }, {}, '+4930777777'))
  platform.tell({ nonsense: true })
  platform.tell(event({ message: 'for the bot', attachments: [{ id: 7 }] }))
  platform.tell(event({ message: '\u202eolleh' }, { sourceName: '\u202eadA' }))
  const [received] = await test.waitForReceived(1)
  expect(received).toMatchObject({ text: '\u202eolleh', sender: { name: '\u202eadA' } })
  expect(connection.warnings?.()).toEqual([`signal-cli serves another number than ${NUMBER}`])
  expect(test.logged.filter((line) => line.includes('form that cannot be read'))).toHaveLength(1)
})

it('reads no history at first, and afterwards what came while it was away', async () => {
  await using platform = await FakeSignalDaemon.start()
  await using test = new TestLink(signal, platform.config)
  await platform.deliver({ text: 'long before' })
  platform.tell(event({ message: 'old' }, { serverReceivedTimestamp: 1_700_000_000_000 }))
  await signal.open(test.link)
  await platform.waitForListener()
  await platform.deliver({ text: 'first' })
  await test.waitForReceived(1)
  test.renew()
  await expect.poll(() => test.state.get('event')).toBe('3')
  await platform.deliver({ text: 'while away' })
  await using _ = await signal.open(test.link)
  const received = await test.waitForReceived(2)
  expect(received.map(({ text }) => text)).toEqual(['first', 'while away'])
})

it('takes everything that a server kept when it knows none of it, but nothing older than itself', async () => {
  await using platform = await FakeSignalDaemon.start()
  await using test = new TestLink(signal, platform.config)
  const first = await signal.open(test.link)
  await first[Symbol.asyncDispose]()
  test.renew()
  platform.tell(event({ message: 'history' }, { serverReceivedTimestamp: 1_700_000_000_000 }))
  await platform.deliver({ text: 'missed' })
  await using _ = await signal.open(test.link)
  const [missed] = await test.waitForReceived(1)
  expect(missed?.text).toBe('missed')
})

it('works with a daemon for a single number', async () => {
  await using platform = await FakeSignalDaemon.start()
  platform.isSingle = true
  await using test = new TestLink(signal, { ...platform.config, base_url: `${String(platform.config['base_url'])}/` })
  await using connection = await signal.open(test.link)
  await connection.send(message({ replyTo: `12:${ADA.uuid}`, to: { chatId: ADA.uuid, replyContext: { quote: 'q' } } }))
  expect(platform.sent[0]?.replyTo).toBe(`12:${ADA.uuid}`)
  await expect(connection.send(message({ replyTo: 'none' }))).rejects.toMatchObject({ retry: 'never' })
  await expect(
    connection.readAttachment?.({ id: '../etc/passwd', chatId: ADA.uuid }, AbortSignal.timeout(1000)),
  ).rejects.toThrow()
})

it.each([
  [-5, 'limited', { response: { results: [{ type: 'RATE_LIMIT_FAILURE', retryAfterSeconds: 86_400 }] } }, 'rate_limit'],
  [-6, 'captcha rejected', null, 'rate_limit'],
  [-4, 'Failed to send message due to untrusted identities', null, 'invalid_request'],
  [-3, 'No network', null, 'network'],
  [-1, 'Failed to send message', { response: { results: [{ type: 'NETWORK_FAILURE' }] } }, 'network'],
  [-1, 'The user +331 is not registered.', null, 'invalid_request'],
  [-1, 'User +4930123456 is not registered.', null, 'auth'],
  [-1, 'User is not registered.', null, 'auth'],
  [-32_602, 'Specified account does not exist', null, 'auth'],
  [-32_603, 'broken', null, 'server_error'],
])('error %i with %j is told apart', async (code, text, data, reason) => {
  await using platform = await FakeSignalDaemon.start()
  await using test = new TestLink(signal, platform.config)
  await using connection = await signal.open(test.link)
  test.nextAnswer = Response.json({ jsonrpc: '2.0', error: { code, message: text, data }, id: '1' })
  await expect(connection.send(message())).rejects.toMatchObject({ reason })
})

it('is refused by the proxy with a wrong token, which is in no message', async () => {
  await using platform = await FakeSignalDaemon.start()
  for (const server of ['signal-cli', 'signal-cli-rest-api']) {
    await using test = new TestLink(signal, { ...platform.config, server, token: 'wrong-proxy-token' })
    const failure = await signal.open(test.link).catch((error: unknown) => error)
    expect(failure).toMatchObject({ reason: 'auth', retry: 'never' })
    expect(String(failure)).not.toContain('wrong-proxy-token')
  }
})

it('asks a container of another mode for messages', async () => {
  await using platform = await FakeSignalRest.start('normal')
  await using test = new TestLink(signal, platform.config)
  await using connection = await signal.open(test.link)
  await test.waitForSleep()
  await platform.deliver({ text: 'one' })
  await platform.deliver({ text: 'two' })
  test.wake()
  expect((await test.waitForReceived(2)).map(({ text }) => text)).toEqual(['one', 'two'])
  const { id } = await connection.send(message())
  expect(id).toBe(platform.sent[0]?.id)
})

it.each([
  ['read: connection refused (IOException)', { retry: 'later' }],
  ['Untrusted Identity for "+331"', { retry: 'never' }],
])('the REST API says %j with the status 400', async (error, failure) => {
  await using platform = await FakeSignalRest.start()
  await using test = new TestLink(signal, platform.config)
  await using connection = await signal.open(test.link)
  test.nextAnswer = Response.json({ error }, { status: 400 })
  await expect(connection.send(message())).rejects.toMatchObject(failure)
})

it('sends names of files so that both servers read them', async () => {
  for (const start of [() => FakeSignalDaemon.start(), () => FakeSignalRest.start()]) {
    await using platform = await start()
    await using test = new TestLink(signal, platform.config)
    await using connection = await signal.open(test.link)
    const file = { kind: 'file' as const, name: 'a;b,c ä.txt', mime: 'text/plain; charset=utf-8', size: 1 }
    await connection.send(message({ attachments: [{ ...file, bytes: async () => Buffer.from('x') }] }))
    const [sent] = platform.sent
    expect(sent?.files[0]).toMatchObject({ mime: 'text/plain', bytes: Buffer.from('x') })
    expect(sent?.files[0]?.name).toMatch(/^a[;_]b[,_]c ä\.txt$/)
  }
})

it.each([{ number: '030 123456' }, { base_url: 'ws://localhost' }, { base_url: 'http://user:pw@localhost' }])(
  'refuses %j',
  (fields) => {
    const config = { base_url: 'http://localhost:8080', number: NUMBER, ...fields }
    expect(() => parse(signal.config, config)).toThrow()
  },
)

testHostileInput(
  'signal',
  event({
    mentions: [{ name: 'bot', number: NUMBER, uuid: 'u', start: 0, length: 1 }],
    attachments: [{ id: 'f', contentType: 'image/png', filename: 'x.png', size: 1 }],
    quote: { id: 5, authorNumber: NUMBER, authorUuid: 'b' },
    groupInfo: { groupId: 'Z3I=', groupName: 'Kitchen' },
  }).envelope,
  parsed(Envelope, (envelope) => decodeEnvelope(envelope, NUMBER)),
)
