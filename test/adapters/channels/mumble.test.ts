import { X509Certificate } from 'node:crypto'
import { generate } from 'selfsigned'
import { parse } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import { v7 as uuid } from 'uuid'
import { afterAll, describe, expect, it } from 'vitest'
import mumble from '../../../adapters/channels/mumble/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/mumble/decode.ts'
import type { TextMessage } from '../../../adapters/channels/mumble/wire.ts'
import { testChannel } from '../../contract/channel.ts'
import { testHostileInput } from '../../support/hostile-input.ts'
import { localCertificate } from '../../support/platforms/certificate.ts'
import { TestLink } from '../../support/platforms/link.ts'
import {
  frame,
  MumbleClient,
  MurmurPlatform,
  numberIn,
  ScriptedMumble,
  startMurmur,
  textIn,
} from '../../support/platforms/mumble.ts'
import { SharedServer } from '../../support/platforms/server-process.ts'

const murmur = new SharedServer(startMurmur)
afterAll(() => murmur[Symbol.asyncDispose]())
const { cert: ca } = localCertificate()
const fingerprint = new X509Certificate(ca).fingerprint256

testChannel({
  name: 'mumble on murmurd',
  load: () => import('../../../adapters/channels/mumble/adapter.ts'),
  start: async () => MurmurPlatform.start(await murmur.get()),
})

const message = (chatId: string, text: string, plainText = text): OutboundMessage => ({
  id: uuid(),
  to: { chatId },
  text,
  plainText,
  attachments: [],
})
function makeCertificate(name: string) {
  const { private: key, cert } = generate([{ name: 'commonName', value: name }], { days: 1, keySize: 2048 })
  return { key, cert }
}

describe('on a real server', () => {
  it('tells registered users, certificates and mere names apart', async () => {
    const server = await murmur.get()
    await using platform = await MurmurPlatform.start(server)
    await using test = new TestLink(mumble, platform.config)
    await using connection = await mumble.open(test.link)
    await platform.waitForListener()
    await platform.sendHtml('from the administrator')
    const password = String(platform.config.token)
    await using named = await MumbleClient.open(server.port, { 1: '12345', 2: password })
    await using certified = await MumbleClient.open(server.port, { 1: 'Grace', 2: password }, makeCertificate('grace'))
    for (const client of [named, certified]) {
      const [, bot] = client.seen.findLast(([type, fields]) => type === 9 && textIn(fields, 3) === 'svc-bot') ?? []
      client.write(11, { 2: (bot && numberIn(bot, 1)) ?? -1, 5: 'hello' })
    }
    const received = await test.waitForReceived(3)
    const senders = new Map(received.map(({ sender }) => [sender.name, sender]))
    expect(senders.get('SuperUser')).toEqual({ id: '0', name: 'SuperUser', handle: 'SuperUser' })
    expect(senders.get('12345')).toEqual({ id: '~12345', name: '12345', isUnverified: true })
    expect(senders.get('Grace')).toEqual({ id: expect.stringMatching(/^[0-9a-f]{40}$/), name: 'Grace' })
    await connection.send(message('@~12345', 'to the name'))
    await named.settle()
    expect(named.seen.filter(([type]) => type === 11).map(([, fields]) => textIn(fields, 5))).toEqual(['to the name'])
    await expect(connection.send(message('@~Nobody', 'x'))).rejects.toMatchObject({ retry: 'later' })
    await expect(connection.send(message('999', 'x'))).rejects.toMatchObject({ reason: 'not_found', retry: 'never' })
  })

  it('reads what Qt writes, pictures, and messages to trees of channels', async () => {
    await using platform = await MurmurPlatform.start(await murmur.get())
    await using test = new TestLink(mumble, platform.config)
    await using _ = await mumble.open(test.link)
    await platform.waitForListener()
    await platform.sendHtml('<p>two<br />lines of <b>SVC-Bot</b>s</p>', true)
    await platform.sendHtml('<img src="data:image/png;base64,AAAA" />')
    await platform.sendHtml('@svc-bot are you here?', false, true)
    const [lines, picture, tree] = await test.waitForReceived(3)
    expect(lines).toMatchObject({ text: 'two\nlines of SVC-Bots', mentionsBot: false })
    expect(picture?.text).toBe('[image]')
    expect(tree).toMatchObject({ text: 'are you here?', mentionsBot: true, chat: { title: 'Kitchen', kind: 'group' } })
  })

  it('reports refused texts, being removed, and a ban', async () => {
    await using platform = await MurmurPlatform.start(await murmur.get())
    await using test = new TestLink(mumble, platform.config)
    const connection = await mumble.open(test.link)
    await platform.waitForListener()
    await expect(connection.send(message('@0', 'x'.repeat(5001)))).rejects.toMatchObject({ retry: 'never' })
    await platform.kick('be quiet', false)
    expect(await connection.closed).toMatchObject({ retry: 'later', reason: expect.stringContaining('be quiet') })
    await expect(connection.send(message('@0', 'x'))).rejects.toMatchObject({ retry: 'later' })
    test.renew()
    // Banned is the address: the server is one of its own.
    await using own = await startMurmur()
    await using banning = await MurmurPlatform.start(own)
    await using other = new TestLink(mumble, banning.config)
    const banned = await mumble.open(other.link)
    await banning.waitForListener()
    await banning.kick('for ever', true)
    expect(await banned.closed).toMatchObject({ retry: 'never' })
  })

  it('sends plain text to a server without HTML, and says what the server does not allow', async () => {
    await using server = await startMurmur({ settings: ['allowhtml=false', 'textmessagelength=100'] })
    await using platform = await MurmurPlatform.start(server)
    await using test = new TestLink(mumble, { ...platform.config, channel: 'Cellar' })
    await using connection = await mumble.open(test.link)
    await connection.send(message('@0', '<b>bold</b> 1 &lt; 2', 'bold'))
    const [sent] = await platform.waitForSent(1)
    expect(sent?.text).toBe('bold')
    expect(connection.warnings?.()).toEqual([
      expect.stringContaining('messages of 100 characters only'),
      expect.stringContaining('there is no channel Cellar'),
    ])
    await expect(connection.send(message('@0', '', 'x'.repeat(101)))).rejects.toMatchObject({
      message: expect.stringContaining('longer than the server allows'),
      retry: 'never',
    })
  })

  it('shows the server its certificate', async () => {
    const { port } = await murmur.get()
    const password = 'server-password-4d1e'
    await using person = await MumbleClient.open(port, { 1: 'Ada', 2: password })
    const { key, cert } = makeCertificate('bot')
    const config = { base_url: `mumble://127.0.0.1:${port}`, username: 'bot', token: password, ca }
    await using test = new TestLink(mumble, { ...config, certificate: cert, certificate_key: key })
    const seen = person.wait((type, fields) => type === 9 && textIn(fields, 3) === 'bot' && textIn(fields, 15) !== '')
    await using _ = await mumble.open(test.link)
    await seen
    const hash = new X509Certificate(cert).fingerprint.replaceAll(':', '').toLowerCase()
    expect(person.seen.map(([, fields]) => textIn(fields, 15))).toContain(hash)
  })

  it('takes only the certificate with this fingerprint, and sends nothing to another server', async () => {
    const { port } = await murmur.get()
    const config = { base_url: `mumble://127.0.0.1:${port}`, username: 'bot', token: 'server-password-4d1e' }
    await using pinned = new TestLink(mumble, { ...config, server_fingerprint: fingerprint.toLowerCase() })
    expect(await mumble.probe(pinned.link)).toEqual({ account: 'bot@127.0.0.1' })
    await using server = await ScriptedMumble.start(() => [])
    for (const fields of [{ server_fingerprint: 'ab'.repeat(32) }, {}]) {
      await using test = new TestLink(mumble, { ...config, ...fields, base_url: server.url })
      await expect(mumble.open(test.link)).rejects.toThrow(/another certificate|certificate/)
      await expect.poll(() => test.connections).toBe(0)
    }
    expect(server.received.items).toEqual([])
  })
})

const ADA = 7
const BOT = 9
/** A server with one person. */
function answer(type: number, fields: Parameters<typeof numberIn>[0]): readonly Buffer[] {
  if (type === 3) return [frame(3, { 1: numberIn(fields, 1) ?? 0 })]
  if (type !== 2) return []
  return [
    frame(7, { 1: 0, 3: 'Root' }),
    frame(7, { 1: 1, 2: 0, 3: 'Games' }),
    frame(7, { 1: 2, 2: 1, 3: 'Chess' }),
    frame(7, { 1: 3, 2: 3, 3: 'Chess' }),
    frame(9, { 1: BOT, 3: 'bot', 5: 0 }),
    frame(9, { 1: ADA, 3: '\u202eada', 4: 0x01_00_00_00, 5: 0 }),
    frame(5, { 1: BOT }),
  ]
}
const scripted = (url: string) => ({ base_url: url, username: 'bot', ca })

it.each([
  [4, 'the password of the server', { reason: 'auth', retry: 'never' }],
  [3, 'the password or the certificate', { reason: 'auth', retry: 'never' }],
  [2, 'the name of the bot is not allowed', { reason: 'invalid_request', retry: 'never' }],
  [5, 'is in use', { retry: 'later' }],
  [6, 'full', { reason: 'overloaded', retry: 'later' }],
  [99, 'rejected', { retry: 'later' }],
])('a rejection of type %i ends the opening', async (type, words, failure) => {
  await using server = await ScriptedMumble.start((one) => (one === 2 ? [frame(4, { 1: type, 2: 'because' })] : []))
  await using test = new TestLink(mumble, scripted(server.url))
  await expect(mumble.open(test.link)).rejects.toMatchObject({ message: expect.stringContaining(words), ...failure })
  expect(test.connections).toBe(0)
})

it('signs in as a bot with Opus, is deaf, and goes to a channel by its path', async () => {
  await using server = await ScriptedMumble.start(answer)
  await using test = new TestLink(mumble, { ...scripted(server.url), channel: 'games/chess', token: 'pw-1f' })
  await using _ = await mumble.open(test.link)
  const seen = server.received.items
  const login = seen.find(([type]) => type === 2)?.[1] ?? new Map()
  expect([textIn(login, 1), textIn(login, 2), numberIn(login, 5), numberIn(login, 6)]).toEqual(['bot', 'pw-1f', 1, 1])
  const states = seen.filter(([type]) => type === 9).map(([, fields]) => fields)
  expect(states.map((fields) => [9, 10, 5].map((tag) => numberIn(fields, tag)))).toEqual([
    [1, 1, undefined],
    [undefined, undefined, 2],
  ])
})

it('goes on where it may not enter a channel, and says so', async () => {
  await using server = await ScriptedMumble.start((type, fields) =>
    type === 9 && numberIn(fields, 5) === 1 ? [frame(12, { 5: 1, 4: 'members only' })] : answer(type, fields),
  )
  await using test = new TestLink(mumble, { ...scripted(server.url), channel: 'Games' })
  await using connection = await mumble.open(test.link)
  expect(connection.warnings?.().join()).toMatch(/cannot enter Games.*members only/)
})

it('reads frames in any pieces, leaves out what it cannot use, and ends at what no server sends', async () => {
  await using server = await ScriptedMumble.start(answer)
  await using test = new TestLink(mumble, scripted(server.url))
  const connection = await mumble.open(test.link)
  const text = frame(11, { 1: ADA, 2: BOT, 5: 'in pieces' })
  for (const byte of text) server.write(Buffer.of(byte))
  const voice = Buffer.concat([Buffer.from([0, 1, 0, 0, 0, 3]), Buffer.of(255, 255, 255)])
  const unread = Buffer.concat([Buffer.from([0, 11, 0, 0, 0, 3]), Buffer.of(42, 200, 1)])
  server.write(voice, unread, frame(11, { 2: BOT, 5: 'of the server' }), frame(11, { 1: BOT, 2: BOT, 5: 'own' }))
  server.write(frame(11, { 1: ADA, 2: BOT, 5: 'last' }))
  const received = await test.waitForReceived(2)
  expect(received.map(({ text: one }) => one)).toEqual(['in pieces', 'last'])
  expect(received[0]?.sender).toEqual({ id: '16777216', name: '\u202eada', handle: '\u202eada' })
  server.write(Buffer.from([0, 11, 255, 255, 255, 255]))
  expect(await connection.closed).toMatchObject({ retry: 'later', reason: expect.stringContaining('too long') })
})

it('asks a silent server, and gives up a message that is not confirmed before the connection ends', async () => {
  let isSilent = false
  await using server = await ScriptedMumble.start((type, fields) => (isSilent ? [] : answer(type, fields)))
  await using test = new TestLink(mumble, scripted(server.url))
  await using connection = await mumble.open(test.link)
  isSilent = true
  const before = server.received.items.length
  await test.waitForSleep()
  test.wake()
  await server.received.wait(before + 1)
  expect(server.received.items.at(-1)?.[0]).toBe(3)
  const sending = connection.send(message('2', 'x'))
  const failing = expect(sending).rejects.toMatchObject({ reason: 'network', retry: 'later' })
  await server.received.wait(before + 3)
  test.abort()
  await failing
})

it('remembers so many users, and not the texts that a server makes up', async () => {
  await using server = await ScriptedMumble.start(answer)
  await using test = new TestLink(mumble, scripted(server.url))
  await using _ = await mumble.open(test.link)
  for (let session = 100; session < 10_200; session++) server.write(frame(9, { 1: session, 3: `user ${session}` }))
  server.write(frame(9, { 1: 100_000, 3: 'n'.repeat(1_000_000) }), frame(11, { 1: 100, 2: BOT, 5: 'forgotten' }))
  server.write(frame(11, { 1: 100_000, 2: BOT, 5: 'known' }))
  const [known] = await test.waitForReceived(1)
  expect([known?.text, known?.sender.name.length]).toEqual(['known', 512])
})

it.each([
  [{ base_url: 'tcp://x' }, 'mumble://voice.example.org:64738'],
  [{ username: ' bot' }, 'a name of at most'],
  [{ certificate: '-----BEGIN CERTIFICATE-----' }, 'belong together'],
  [{ server_fingerprint: 'abc' }, '64 hexadecimal digits'],
])('refuses %j and says what is wrong', (fields, words) => {
  const config = { base_url: 'mumble://voice.example.org', username: 'bot', ...fields }
  expect(() => parse(mumble.config, config)).toThrow(words)
})

testHostileInput(
  'mumble',
  { actor: 1, sessions: [2], channels: [3], trees: [4], message: '<p>hello <b>bot</b> &amp; all</p>' },
  (raw) => {
    const { actor, sessions, channels, trees, message: html } = (raw ?? {}) as Record<string, unknown>
    const numbers = (value: unknown): number[] =>
      Array.isArray(value) ? value.filter((one) => typeof one === 'number') : []
    const decoded: TextMessage = {
      sessions: numbers(sessions),
      channels: numbers(channels),
      trees: numbers(trees),
      message: typeof html === 'string' ? html : '',
      ...(typeof actor === 'number' && { actor }),
    }
    const user = (session: number) => ({ session, name: typeof html === 'string' ? html : 'ada', channelId: 0 })
    return decodeMessage(decoded, { bot: { ...user(2), name: 'bot' }, now: 0, user, channelName: () => 'Root' })
  },
)
