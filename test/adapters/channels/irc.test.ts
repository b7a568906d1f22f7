import { v7 as uuid } from 'uuid'
import { parse } from 'svc/sdk'
import { afterAll, expect, it } from 'vitest'
import irc from '../../../adapters/channels/irc/adapter.ts'
import { cutText } from '../../../adapters/channels/irc/encode.ts'
import { testChannel } from '../../contract/channel.ts'
import { IrcLineServer } from '../../support/platforms/irc-line-server.ts'
import { NgircdPlatform, startNgircd } from '../../support/platforms/irc.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { SharedServer } from '../../support/platforms/server-process.ts'

const ngircd = new SharedServer(startNgircd)
afterAll(() => ngircd[Symbol.asyncDispose]())

testChannel({
  name: 'irc on ngircd',
  load: () => import('../../../adapters/channels/irc/adapter.ts'),
  start: async () => NgircdPlatform.start(await ngircd.get()),
})

const message = (chatId: string, text: string) => ({
  id: uuid(),
  to: { chatId },
  text,
  plainText: text,
  attachments: [],
})
const sasl = { nick: 'bot', sasl_user: 'bot', token: 'sasl-password' }
/** What a server with SASL answers. */
const saslScript =
  (verdict: string) =>
  (line: string): readonly string[] => {
    if (line === 'CAP LS 302')
      return [':s CAP * LS * :server-time batch', ':s CAP * LS :sasl=PLAIN account-tag message-tags echo-message']
    if (line.startsWith('CAP REQ')) return [`:s CAP * ACK :${line.slice(9)}`]
    if (line === 'AUTHENTICATE PLAIN') return ['AUTHENTICATE +']
    if (line.startsWith('AUTHENTICATE')) return [verdict]
    if (line === 'CAP END') return [':s 001 bot :Welcome']
    if (line.startsWith('PING')) return [`:s PONG s :${line.slice(5)}`]
    return []
  }

it('signs in with SASL, and tells accounts from nicknames', async () => {
  await using server = await IrcLineServer.start(saslScript(':s 903 bot :ok'))
  await using test = new TestLink(irc, { ...sasl, base_url: server.url, nickserv_password: 'nick-pass' })
  await using connection = await irc.open(test.link)
  const sent = server.lines.items
  expect(sent).toContain('CAP REQ :message-tags server-time account-tag echo-message sasl')
  expect(sent).toContain(`AUTHENTICATE ${Buffer.from('bot\0bot\0sasl-password').toString('base64')}`)
  expect(sent.some((line) => line.startsWith('PASS'))).toBe(false)
  server.write(
    '@account=ada;msgid=m1;time=2026-01-02T03:04:05.678Z :Ada!u@h PRIVMSG bot :\u0002bold\u000f and \u000304red',
    ':ada!u@h PRIVMSG bot :\u0001VERSION\u0001',
    ':ada!u@h NOTICE bot :never answered',
    '@msgid=m2;bot :ada!u@h PRIVMSG #Room :ask @bot, please',
    ':ada!u@h PRIVMSG #room :a robot is no bot_2',
    ':ada!u@h PRIVMSG bot :\u0001ACTION waves\u0001',
  )
  const [first, second, third, action] = await test.waitForReceived(4)
  expect(first).toMatchObject({ id: 'm1', text: 'bold and red', sentAt: '2026-01-02T03:04:05.678Z' })
  expect(first?.sender).toEqual({ id: 'ada', name: 'Ada' })
  expect(second).toMatchObject({ mentionsBot: true, chat: { id: '#room', kind: 'group' } })
  expect(second?.sender).toEqual({ id: '~ada', name: 'ada', isUnverified: true, isBot: true })
  expect([third?.mentionsBot, action?.text]).toEqual([false, 'waves'])
  expect(server.lines.items.filter((line) => /VERSION|NOTICE/.test(line))).toEqual([])
  await connection.send(message('#room', 'one\r\nQUIT :injected\n\n two'))
  expect(server.lines.items.filter((line) => /^(QUIT|PRIVMSG #)/.test(line))).toEqual([
    'PRIVMSG #room :one',
    'PRIVMSG #room :QUIT :injected',
    'PRIVMSG #room : two',
  ])
  await expect(connection.send(message('#a,#b', 'x'))).rejects.toMatchObject({ retry: 'never' })
})

it('says that it writes without using up its lines, and learns the ids of its messages', async () => {
  const answer = saslScript(':s 903 bot :ok')
  await using server = await IrcLineServer.start((line) =>
    line.startsWith('PRIVMSG') ? [`@msgid=own-${line.length} :bot!bot@host ${line}`] : answer(line),
  )
  await using test = new TestLink(irc, { ...sasl, base_url: server.url }, () => 1000)
  await using connection = await irc.open(test.link)
  for (let n = 0; n < 10; n++) await connection.typing!({ chatId: '#room' })
  await expect(connection.typing!({ chatId: '#room QUIT' })).rejects.toMatchObject({ retry: 'never' })
  expect(await connection.send(message('#room', 'one'))).toEqual({ id: 'own-18' })
  expect(server.lines.items.filter((line) => line.includes('TAGMSG'))).toEqual(
    Array.from({ length: 4 }, () => '@+typing=active TAGMSG #room'),
  )
  expect(test.received).toEqual([])
})

it.each(['my bot', '1bot', 'b'.repeat(31), 'bot\r\nQUIT'])('refuses the nickname %j and says what one is', (nick) => {
  const config = { base_url: 'ircs://irc.example.org', nick }
  expect(() => parse(irc.config, config)).toThrow('nick: expected a nickname without spaces: at most 30 letters')
})

it.each([
  [
    'a wrong SASL password',
    sasl,
    saslScript(':s 904 bot :SASL authentication failed'),
    { reason: 'auth', retry: 'never' },
  ],
  ['a server without SASL', sasl, () => [':s CAP * LS :server-time'], { reason: 'auth', retry: 'never' }],
  ['a server without capabilities', sasl, () => [':s 001 bot :Welcome'], { reason: 'auth', retry: 'never' }],
  ['a ban', { nick: 'bot' }, () => [':s 465 * :You are banned'], { reason: 'auth', retry: 'never' }],
  ['a full server', { nick: 'bot' }, () => ['ERROR :Closing Link: full'], { reason: 'network', retry: 'later' }],
  ['a name that is always in use', { nick: 'bot' }, () => [':s 433 * bot :in use'], { retry: 'later' }],
] as const)('%s ends the opening', async (_, fields, script, failure) => {
  await using server = await IrcLineServer.start((line) =>
    /^(CAP LS|NICK|AUTH|CAP REQ)/.test(line) ? script(line) : [],
  )
  await using test = new TestLink(irc, { ...fields, base_url: server.url })
  await expect(irc.open(test.link)).rejects.toMatchObject(failure)
  expect(test.connections).toBe(0)
})

it('takes the next free name, asks a silent server, and reports refused messages', async () => {
  await using server = await IrcLineServer.start((line) => {
    if (line === 'NICK bot') return [':s 433 * bot :in use']
    if (line === 'NICK bot_') return [':s 001 bot_ :Welcome', ':s 473 bot_ #closed :invite only']
    if (line.startsWith('PRIVMSG gone')) return [':s 401 bot_ gone :No such nick']
    return line.startsWith('PING') && !line.endsWith('127.0.0.1') ? [`:s PONG s ${line.slice(5)}`] : []
  })
  await using test = new TestLink(irc, { nick: 'bot', base_url: server.url, channels: ['#closed'] })
  await using connection = await irc.open(test.link)
  expect(await irc.probe(test.link)).toEqual({ account: 'bot_@127.0.0.1' })
  await expect(connection.send(message('gone', 'x'))).rejects.toMatchObject({ reason: 'not_found', retry: 'never' })
  await connection.send(message('here', 'x'))
  expect(test.logged.join()).toMatch(/is in use.*cannot join #closed: invite only/)
  expect(connection.warnings?.()).toEqual(['cannot join #closed: invite only'])
  await test.waitForSleep()
  test.wake()
  await expect.poll(() => server.lines.items.at(-1)).toBe('PING 127.0.0.1')
})

it('warns of a channel that it was removed from, until it is in it again', async () => {
  await using server = await IrcLineServer.start((line) => {
    if (line === 'NICK bot') return [':s 001 bot :Welcome']
    if (line === 'JOIN #room') return [':bot!b@h JOIN #room', ':op!o@h KICK #room bot :not now']
    if (line.startsWith('PRIVMSG op')) return [':bot!b@h JOIN #room']
    return line.startsWith('PING') ? [`:s PONG s ${line.slice(5)}`] : []
  })
  await using test = new TestLink(irc, { nick: 'bot', base_url: server.url, channels: ['#room'] })
  await using connection = await irc.open(test.link)
  await expect.poll(() => connection.warnings?.()).toEqual(['removed from #room: not now'])
  await connection.send(message('op', 'let me in'))
  expect(connection.warnings?.()).toEqual([])
})

it('does not send faster than servers take it', async () => {
  const sleeps: number[] = []
  await using server = await IrcLineServer.start(saslScript(':s 903 bot :ok'))
  await using test = new TestLink(irc, { ...sasl, base_url: server.url }, () => 1000)
  Object.assign(test.link, {
    sleep: async (ms: number) => void (ms < 60_000 ? sleeps.push(ms) : await new Promise(() => undefined)),
  })
  const connection = await irc.open(test.link)
  await connection.send(message('#room', '1\n2\n3\n4\n5\n6\n7'))
  expect(sleeps).toEqual([2000, 4000])
  test.abort()
  await connection.closed
})

it.each(['ä'.repeat(700), '日本語'.repeat(300), 'word '.repeat(200), '😀'.repeat(250)])(
  'cuts between characters',
  (text) => {
    const pieces = cutText(text, 400)
    expect(pieces.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''))
    expect(Math.max(...pieces.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(400)
  },
)
