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
  ])('%s: %s', (value, expected) => {
    expect(isAuthentic(header(value), 'ada@mail.people.test', 'mx.svc.test')).toBe(expected)
  })
})
