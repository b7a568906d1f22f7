import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { v7 as uuid } from 'uuid'
import { afterAll, describe, expect, it } from 'vitest'
import email from '../../../adapters/channels/email/adapter.ts'
import { isAuthentic } from '../../../adapters/channels/email/authentication.ts'
import { testChannel } from '../../contract/channel.ts'
import { MailPlatform, startDovecot } from '../../support/platforms/email.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { SharedServer } from '../../support/platforms/server-process.ts'

const dovecot = new SharedServer(startDovecot)
afterAll(() => dovecot[Symbol.asyncDispose]())

testChannel({
  name: 'email on dovecot',
  load: () => import('../../../adapters/channels/email/adapter.ts'),
  start: async () => MailPlatform.start(await dovecot.get()),
})

const mailOf = (headers: readonly string[], body = 'hello'): string =>
  [...headers, 'To: bot@svc.test', '', body, ''].join('\r\n')
const from = 'From: Ada <ada@people.test>'

it('drops automatic and unverified mail, goes on after mail it cannot read, and marks all of it', async () => {
  await using platform = await MailPlatform.start(await dovecot.get())
  await platform.deliverRaw(mailOf([from, 'Subject: history']))
  await using test = new TestLink(email, { ...platform.config, auth_server: 'mx.svc.test', max_message_bytes: 20_000 })
  await using _ = await email.open(test.link)
  const verified = 'Authentication-Results: mx.svc.test; dmarc=pass header.from=people.test'
  const dropped = ['Auto-Submitted: auto-replied', 'Precedence: bulk', 'List-Id: <list.people.test>', 'Return-Path: <>']
  for (const header of dropped) await platform.deliverRaw(mailOf([verified, header, from]))
  await platform.deliverRaw(mailOf(['Authentication-Results: mx.evil.test; dmarc=pass', verified, from], 'forged'))
  await platform.deliverRaw(mailOf([verified, from], 'x'.repeat(30_000)))
  await platform.deliverRaw(
    mailOf([verified, 'Auto-Submitted: no', 'Subject: =?utf-8?q?[helper]_caf=C3=A9?=', from], 'last'),
  )
  const [message] = await test.waitForReceived(1)
  expect(message).toMatchObject({
    text: '[helper] café\n\nlast',
    agent: 'helper',
    chat: { id: 'ada@people.test', kind: 'direct', title: '[helper] café' },
    sender: { id: 'ada@people.test', name: 'Ada', handle: '@people.test' },
  })
  expect(message?.sender.isUnverified).toBe(undefined)
  expect(message?.id).toMatch(/^<\d+\.\d+@svc\.invalid>$/)
  expect(test.logged.filter((line) => line.includes('is not answered'))).toHaveLength(6)
})

it('answers in the thread, over STARTTLS, and says that it is an answer', async () => {
  await using platform = await MailPlatform.start(await dovecot.get(), { startTls: true })
  await using test = new TestLink(email, { ...platform.config, display_name: 'Bot "B"' })
  await using connection = await email.open(test.link)
  const references = '<root@people.test> <middle@people.test>'
  await platform.deliverRaw(
    mailOf(
      [
        from,
        'Subject: Aw: plan',
        'Message-ID: <m3@people.test>',
        `References: ${references}`,
        'In-Reply-To: <middle@people.test>',
        'Content-Type: text/html',
      ],
      '<p>one</p><script>x</script>two &amp; three',
    ),
  )
  const [message] = await test.waitForReceived(1)
  expect(message).toMatchObject({
    threadId: '<root@people.test>',
    replyTo: '<middle@people.test>',
    sender: { isUnverified: true },
  })
  expect(message?.text).toMatch(/^one\s+two & three$/)
  const id = uuid()
  const to = { chatId: 'ada@people.test', threadId: '<root@people.test>', replyContext: message?.replyContext ?? {} }
  await connection.send({ id, to, text: '<b>x</b>', plainText: 'x', attachments: [] })
  const headers = platform.headers[0] ?? new Map<string, string>()
  expect(headers.get('message-id')).toBe(`<${id}@svc.test>`)
  expect(headers.get('references')).toBe(`${references} <m3@people.test>`)
  expect(headers.get('in-reply-to')).toBe('<m3@people.test>')
  expect([headers.get('subject'), headers.get('auto-submitted')]).toEqual(['Aw: plan', 'auto-replied'])
  for (const chatId of ['nobody', 'a@b.test, c@d.test', 'a@b.test\r\nBcc: c@d.test'])
    await expect(
      connection.send({ id, to: { chatId }, text: 'x', plainText: 'x', attachments: [] }),
    ).rejects.toMatchObject({ retry: 'never' })
  await expect.poll(() => test.connections).toBe(1)
})

it.each([
  ['', 0],
  [', with a clock ahead of ours', 3_600_000],
  [', with a clock behind ours', -3_600_000],
])('reads what came meanwhile when the server numbered the folder anew%s', async (_title, aheadMs) => {
  await using platform = await MailPlatform.start(await dovecot.get())
  const now = Date.now() + aheadMs
  const deliver = (text: string, at: number): Promise<void> =>
    platform.deliverRaw(mailOf([from, `Message-ID: <${text}@people.test>`], text), new Date(at))
  // Mail servers count in seconds: the history is from another one than the rest.
  await deliver('history', now - 2000)
  await using test = new TestLink(email, platform.config)
  const first = await email.open(test.link)
  await deliver('read', now)
  await test.waitForReceived(1)
  await expect.poll(() => JSON.parse(test.state.get('position') ?? '{}').uid).toBe(2)
  await first[Symbol.asyncDispose]()
  await deliver('meanwhile', now)
  const { at } = JSON.parse(test.state.get('position') ?? '{}')
  test.state.set('position', JSON.stringify({ uidValidity: '1', uid: 900, at }))
  await using _second = await email.open(test.renew())
  expect((await test.waitForReceived(2)).map(({ text }) => text)).toEqual(['read', 'meanwhile'])
})

it.each([
  ['does not offer STARTTLS', '* OK hello\r\n', 'svc1 BAD what\r\n'],
  ['does not begin with a sign-in', '* PREAUTH hello\r\n', ''],
  ['sent more than its answer', '* OK hello\r\n', 'svc1 OK go\r\n* OK injected\r\n'],
])('sends no password to a server that %s', async (reason, greeting, answer) => {
  const heard: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      heard.push(String(data))
      socket.write(answer)
    })
    socket.write(greeting)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const config = { address: 'bot@svc.test', token: 'password', smtp_url: 'smtp://127.0.0.1' }
  await using test = new TestLink(email, { ...config, base_url: `imap://127.0.0.1:${port}` })
  await expect(email.open(test.link)).rejects.toMatchObject({
    message: expect.stringContaining(reason),
    retry: 'never',
  })
  expect(heard.join('')).not.toMatch(/LOGIN|AUTH/)
  server.close()
})

describe('Authentication-Results', () => {
  const header = (value: string) => [{ key: 'authentication-results', value }]
  it.each([
    ['mx.svc.test; dmarc=pass', true],
    ['MX.svc.test 1; spf=fail; dkim=pass (good) header.d=people.test', true],
    ['mx.svc.test; dkim=pass header.i=@people.test', true],
    ['mx.svc.test; dkim=pass header.d=evil.test', false],
    ['mx.svc.test; dkim=pass header.d=test', false],
    ['mx.svc.test; spf=pass smtp.mailfrom=people.test', false],
    ['mx.svc.test (; dmarc=pass); none', false],
    ['mx.svc.test.evil.test; dmarc=pass', false],
    ['mx.svc.test; dmarc=fail reason="dmarc=pass"', false],
    ['mx.svc.test; dmarc=pass (p=none) header.from=mail.people.test', true],
    ['mx.svc.test; dmarc=pass header.from=evil.test', false],
    ['mx.svc.test; spf=pass smtp.mailfrom="a; dmarc=pass ; b"@evil.test', false],
    [String.raw`mx.svc.test; spf=pass smtp.mailfrom="\"; dmarc=pass ; b"@evil.test`, false],
    ['mx.svc.test; dkim=pass header.i="a header.d=people.test b"@evil.test', false],
  ])('%s: %s', (value, expected) => {
    expect(isAuthentic(header(value), 'ada@mail.people.test', 'mx.svc.test')).toBe(expected)
  })

  // The server may have verified evil.test, and the reader takes the other one.
  it.each([
    [['"Ada, of people" <ada@people.test>'], true],
    [['ada@people.test'], true],
    [['ada@people.test', 'eve@evil.test'], false],
    [['ada@people.test, eve@evil.test'], false],
    [['<ada@people.test> <eve@evil.test>'], false],
    [['people: ada@people.test;'], false],
  ])('of %s: %s', (senders, expected) => {
    const headers = [...header('mx.svc.test; dmarc=pass'), ...senders.map((value) => ({ key: 'from', value }))]
    expect(isAuthentic(headers, 'ada@people.test', 'mx.svc.test')).toBe(expected)
  })
})
